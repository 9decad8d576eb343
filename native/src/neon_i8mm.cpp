// ARM with matrix products of bytes (FEAT_I8MM), whose `usmmla` multiplies two rows of eight bytes
// by two columns.
#include <arm_neon.h>

#include "float_kernels.hpp"

namespace fillmask {
namespace {

constexpr size_t kGroup = 8;
constexpr size_t kPairs = 8;  // pairs of columns per product, so that all sums fit into registers
constexpr size_t kColumns = 2 * kPairs;

// Computes an even number of rows. An odd last row stands for two rows, one of which is not kept.
template <size_t RowPairs>
void multiply_rows(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel,
                   size_t groups, const int32_t* start, int32_t* sums) {
  int32x4_t total[RowPairs][kPairs];
  for (size_t p = 0; p < kPairs; ++p) {
    const int32x2_t both = vld1_s32(start + 2 * p);
    for (size_t r = 0; r < RowPairs; ++r) total[r][p] = vcombine_s32(both, both);
  }
  for (size_t g = 0; g < groups; ++g) {
    uint8x16_t values[RowPairs];
    for (size_t r = 0; r < RowPairs; ++r) {
      const uint8_t* first = rows + 2 * r * stride + g * kGroup;
      const uint8_t* second = 2 * r + 1 < count ? first + stride : first;
      values[r] = vcombine_u8(vld1_u8(first), vld1_u8(second));
    }
    const int8_t* columns = panel + g * kGroup * kPanelColumns;
    for (size_t p = 0; p < kPairs; ++p) {
      const int8x16_t pair = vld1q_s8(columns + p * 2 * kGroup);
      for (size_t r = 0; r < RowPairs; ++r) {
        total[r][p] = vusmmlaq_s32(total[r][p], values[r], pair);
      }
    }
  }
  for (size_t r = 0; r < RowPairs; ++r) {
    int32_t* first = sums + 2 * r * kPanelColumns;
    for (size_t p = 0; p < kPairs; ++p) {
      vst1_s32(first + 2 * p, vget_low_s32(total[r][p]));
      if (2 * r + 1 < count) {
        vst1_s32(first + kPanelColumns + 2 * p, vget_high_s32(total[r][p]));
      }
    }
  }
}

void multiply(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel, size_t groups,
              const int32_t* start, int32_t* sums) {
  constexpr decltype(&multiply_rows<1>) kByPairs[] = {multiply_rows<1>, multiply_rows<2>,
                                                      multiply_rows<kTileRows / 2>};
  for (size_t c = 0; c < kPanelColumns; c += kColumns) {
    kByPairs[(count - 1) / 2](rows, stride, count, panel + c * kGroup, groups, start + c, sums + c);
  }
}

}  // namespace

const InstructionSet kNeonI8mm = {"neon_i8mm",  true,     kGroup, 0,
                                  round_row<0>, multiply, finish, attend};

}  // namespace fillmask
