// ARM with matrix products of bytes (FEAT_I8MM), whose `usmmla` multiplies two rows of eight bytes
// by two columns.
#include <arm_neon.h>

#include "byte_products.hpp"

namespace fillmask {
namespace {

struct NeonI8mm {
  using Sums = int32x4_t;
  using Bytes = int8x16_t;
  // all sums of 6 rows and 16 columns fit into registers
  static constexpr size_t kGroup = 8, kRows = 2, kColumns = 2, kVectors = 8;
  static constexpr int kShift = 0;

  static Sums load_sums(const int32_t* from) {
    const int32x2_t both = vld1_s32(from);
    return vcombine_s32(both, both);
  }
  static Bytes load_columns(const int8_t* from) { return vld1q_s8(from); }
  static uint8x16_t load_rows(const uint8_t* from, size_t to_second) {
    return vcombine_u8(vld1_u8(from), vld1_u8(from + to_second));
  }
  static void add_products(Sums& sums, uint8x16_t rows, Bytes columns) {
    sums = vusmmlaq_s32(sums, rows, columns);
  }
  static void store(Sums sums, int32_t* to) {
    vst1_s32(to, vget_low_s32(sums));
    vst1_s32(to + kPanelColumns, vget_high_s32(sums));
  }
};

}  // namespace

const InstructionSet kNeonI8mm = fast_instruction_set<NeonI8mm>("neon_i8mm");

}  // namespace fillmask
