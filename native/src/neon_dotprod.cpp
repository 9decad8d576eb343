// ARM with dot products (Armv8.2), whose `sdot` adds four products of signed bytes.
#include <arm_neon.h>

#include "byte_products.hpp"

namespace fillmask {
namespace {

struct NeonDotProd {
  using Sums = int32x4_t;
  using Bytes = int8x16_t;
  // all sums of 6 rows and 16 columns fit into registers
  static constexpr size_t kGroup = 4, kRows = 1, kColumns = 4, kVectors = 4;
  static constexpr int kShift = -128;

  static Sums load_sums(const int32_t* from) { return vld1q_s32(from); }
  static Bytes load_columns(const int8_t* from) { return vld1q_s8(from); }
  static Bytes load_rows(const uint8_t* from, size_t) {
    return vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const int32_t*>(from)));
  }
  static void add_products(Sums& sums, Bytes rows, Bytes columns) {
    sums = vdotq_s32(sums, columns, rows);
  }
  static void store(Sums sums, int32_t* to) { vst1q_s32(to, sums); }
};

}  // namespace

const InstructionSet kNeonDotProd = fast_instruction_set<NeonDotProd>("neon_dotprod");

}  // namespace fillmask
