// Products of bytes, with the instructions of one CPU, which a class `Cpu` describes: a register of
// sums has kRows rows and kColumns columns, and kVectors of them stand side by side.
#pragma once

#include <cstring>

#include "float_kernels.hpp"

namespace fillmask {
namespace {

// Computes `Registers` registers of rows. An odd last row stands in for a second one.
template <typename Cpu, size_t Registers>
void multiply_rows(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel,
                   size_t groups, const int32_t* start, int32_t* sums) {
  constexpr size_t kRows = Cpu::kRows, kColumns = Cpu::kColumns, kVectors = Cpu::kVectors;
  // GCC keeps the totals in registers only if it unrolls all loops over them.
  typename Cpu::Sums total[Registers][kVectors];
#pragma GCC unroll 8
  for (size_t r = 0; r < Registers; ++r) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) total[r][v] = Cpu::load_sums(start + v * kColumns);
  }
  for (size_t g = 0; g < groups; ++g) {
    typename Cpu::Bytes columns[kVectors];
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      columns[v] = Cpu::load_columns(panel + (g * kPanelColumns + v * kColumns) * Cpu::kGroup);
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < Registers; ++r) {
      const size_t to_second = r * kRows + 1 < count ? stride : 0;
      const auto values = Cpu::load_rows(rows + r * kRows * stride + g * Cpu::kGroup, to_second);
#pragma GCC unroll 8
      for (size_t v = 0; v < kVectors; ++v) Cpu::add_products(total[r][v], values, columns[v]);
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < Registers; ++r) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVectors; ++v) {
      Cpu::store(total[r][v], sums + r * kRows * kPanelColumns + v * kColumns);
    }
  }
}

template <typename Cpu, size_t Registers = kTileRows / Cpu::kRows>
void multiply(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel, size_t groups,
              const int32_t* start, int32_t* sums) {
  if constexpr (Registers > 1) {
    if (count <= (Registers - 1) * Cpu::kRows) {
      return multiply<Cpu, Registers - 1>(rows, stride, count, panel, groups, start, sums);
    }
  }
  for (size_t c = 0; c < kPanelColumns; c += Cpu::kVectors * Cpu::kColumns) {
    multiply_rows<Cpu, Registers>(rows, stride, count, panel + c * Cpu::kGroup, groups, start + c,
                                  sums + c);
  }
}

template <typename Cpu>
constexpr InstructionSet fast_instruction_set(const char* name) {
  return {name,          true,    Cpu::kGroup, Cpu::kShift, round_row<Cpu::kShift>,
          multiply<Cpu>, kFinish, attend};
}

}  // namespace
}  // namespace fillmask
