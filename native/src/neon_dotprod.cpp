// ARM with dot products (Armv8.2), whose `sdot` adds four products of signed bytes.
#include <arm_neon.h>

#include "float_kernels.hpp"

namespace fillmask {
namespace {

constexpr size_t kGroup = 4;
constexpr size_t kLanes = 4;
constexpr size_t kVectors = 4;  // of sums per row, so that all sums fit into registers
constexpr size_t kColumns = kLanes * kVectors;

template <size_t Rows>
void multiply_rows(const uint8_t* rows, size_t stride, const int8_t* panel, size_t groups,
                   const int32_t* start, int32_t* sums) {
  int32x4_t total[Rows][kVectors];
  for (size_t r = 0; r < Rows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) total[r][v] = vld1q_s32(start + v * kLanes);
  }
  for (size_t g = 0; g < groups; ++g) {
    int8x16_t columns[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      columns[v] = vld1q_s8(panel + g * kGroup * kPanelColumns + v * kLanes * kGroup);
    }
    for (size_t r = 0; r < Rows; ++r) {
      const auto* four = reinterpret_cast<const int32_t*>(rows + r * stride + g * kGroup);
      const int8x16_t values = vreinterpretq_s8_s32(vld1q_dup_s32(four));
      for (size_t v = 0; v < kVectors; ++v) {
        total[r][v] = vdotq_s32(total[r][v], columns[v], values);
      }
    }
  }
  for (size_t r = 0; r < Rows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      vst1q_s32(sums + r * kPanelColumns + v * kLanes, total[r][v]);
    }
  }
}

void multiply(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel, size_t groups,
              const int32_t* start, int32_t* sums) {
  constexpr decltype(&multiply_rows<1>) kByCount[] = {multiply_rows<1>, multiply_rows<2>,
                                                      multiply_rows<3>, multiply_rows<4>,
                                                      multiply_rows<5>, multiply_rows<kTileRows>};
  for (size_t c = 0; c < kPanelColumns; c += kColumns) {
    kByCount[count - 1](rows, stride, panel + c * kGroup, groups, start + c, sums + c);
  }
}

}  // namespace

const InstructionSet kNeonDotProd = {"neon_dotprod",  true,     kGroup, -128,
                                     round_row<-128>, multiply, finish, attend};

}  // namespace fillmask
