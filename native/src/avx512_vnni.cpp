// x86-64 with AVX512-VNNI, whose `vpdpbusd` adds four products of unsigned and signed bytes.
#include <immintrin.h>

#include <cstring>
#include <utility>

#include "float_kernels.hpp"

namespace fillmask {
namespace {

constexpr size_t kGroup = 4;
constexpr size_t kLanes = 16;
constexpr size_t kVectors = kPanelColumns / kLanes;

inline void add_products(__m512i& sums, __m512i rows, __m512i columns) {
#if defined(__GNUC__) && !defined(__clang__)
  // GCC 12 keeps the sums on the stack if it sees an intrinsic here, at half the speed.
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(rows), "v"(columns));
#else
  sums = _mm512_dpbusd_epi32(sums, rows, columns);
#endif
}

template <size_t Rows>
void multiply_rows(const uint8_t* rows, size_t stride, const int8_t* panel, size_t groups,
                   const int32_t* start, int32_t* sums) {
  // GCC keeps the totals in registers only if it unrolls all loops over them.
  __m512i total[Rows][kVectors];
#pragma GCC unroll 8
  for (size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      total[r][v] = _mm512_loadu_si512(start + v * kLanes);
    }
  }
  for (size_t g = 0; g < groups; ++g) {
    __m512i columns[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      columns[v] = _mm512_load_si512(panel + (g * kVectors + v) * kAlignment);
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < Rows; ++r) {
      int32_t four;
      std::memcpy(&four, rows + r * stride + g * kGroup, sizeof four);
      const __m512i values = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) add_products(total[r][v], values, columns[v]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      _mm512_storeu_si512(sums + r * kPanelColumns + v * kLanes, total[r][v]);
    }
  }
}

void multiply(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel, size_t groups,
              const int32_t* start, int32_t* sums) {
  constexpr decltype(&multiply_rows<1>) kByCount[] = {multiply_rows<1>, multiply_rows<2>,
                                                      multiply_rows<3>, multiply_rows<4>,
                                                      multiply_rows<5>, multiply_rows<kTileRows>};
  kByCount[count - 1](rows, stride, panel, groups, start, sums);
}

}  // namespace

const InstructionSet kAvx512Vnni = {"avx512_vnni", true,     kGroup, 0,
                                    round_row<0>,  multiply, finish, attend};

}  // namespace fillmask
