// Every CPU, without special instructions. An export computes a fused graph's golden results with
// these kernels where there are no faster ones. A service then takes the stock graph.
#include "float_kernels.hpp"

namespace fillmask {
namespace {

constexpr size_t kGroup = 4;

void multiply(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel, size_t groups,
              const int32_t* start, int32_t* sums) {
  for (size_t r = 0; r < count; ++r) {
    int32_t* total = sums + r * kPanelColumns;
    for (size_t c = 0; c < kPanelColumns; ++c) total[c] = start[c];
    for (size_t g = 0; g < groups; ++g) {
      const uint8_t* values = rows + r * stride + g * kGroup;
      const int8_t* columns = panel + g * kGroup * kPanelColumns;
      for (size_t c = 0; c < kPanelColumns; ++c) {
        for (size_t k = 0; k < kGroup; ++k) total[c] += values[k] * columns[c * kGroup + k];
      }
    }
  }
}

}  // namespace

const InstructionSet kPortable = {"portable",   false,    kGroup,  0,
                                  round_row<0>, multiply, kFinish, attend};

}  // namespace fillmask
