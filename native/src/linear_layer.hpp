// A linear layer with int8 weights in the order of the kernels.
#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include "kernels.hpp"

namespace fillmask {

// Weights of a layer, as in the graph. Matrices are in row-major order.
struct Weights {
  const int8_t* values;  // (inputs, outputs), or (outputs, inputs) if `transposed`
  bool transposed;
  size_t inputs, outputs;
  const float* scales;         // (outputs,)
  const float* bias;           // (outputs,) or null
  const float* float_weights;  // (outputs, float_channels) or null
  size_t float_channels;
  Activation activation;
  int zero_point;
};

// Rounded rows of a layer's input.
struct RoundedRows {
  const uint8_t* values;  // (rows, stride)
  size_t stride;
  const float* scales;    // (rows,)
  const float* floats;    // (rows, float_channels) or null
  const float* residual;  // (rows, outputs), added to the outputs, or null
};

class LinearLayer {
 public:
  explicit LinearLayer(const Weights& weights)
      : outputs_(weights.outputs),
        panels_((weights.outputs + kPanelColumns - 1) / kPanelColumns),
        groups_((weights.inputs + kernels_.group - 1) / kernels_.group),
        float_channels_(weights.float_channels),
        finish_(kernels_.finish[static_cast<size_t>(weights.activation)]),
        values_(zeros<int8_t>(panels_ * groups_ * kPanelColumns * kernels_.group)),
        starts_(zeros<int32_t>(panels_ * kPanelColumns)),
        constants_(zeros<float>(panels_ * (2 + float_channels_) * kPanelColumns)) {
    for (size_t panel = 0; panel < panels_; ++panel) pack(weights, panel);
  }

  size_t panels() const { return panels_; }
  size_t outputs() const { return outputs_; }

  // Computes the columns of a panel for the rows from `first` to before `last`.
  // y: (rows, outputs) outputs of all rows.
  void compute(const RoundedRows& rows, size_t panel, size_t first, size_t last, float* y) const {
    const size_t column = panel * kPanelColumns;
    const PanelEnd end = {constants_.get() + (2 + float_channels_) * column, float_channels_,
                          std::min(kPanelColumns, outputs_ - column)};
    const int8_t* packed = values_.get() + column * groups_ * kernels_.group;
    alignas(kAlignment) int32_t sums[kTileRows * kPanelColumns];
    for (size_t row = first; row < last; row += kTileRows) {
      const size_t count = std::min(kTileRows, last - row), start = row * outputs_ + column;
      kernels_.multiply(rows.values + row * rows.stride, rows.stride, count, packed, groups_,
                        starts_.get() + column, sums);
      finish_(end, sums, count, rows.scales + row,
              float_channels_ ? rows.floats + row * float_channels_ : nullptr,
              rows.residual ? rows.residual + start : nullptr, y + start, outputs_);
    }
  }

 private:
  struct AlignedFree {
    void operator()(void* memory) const { ::operator delete(memory, std::align_val_t(kAlignment)); }
  };
  template <typename T>
  using Array = std::unique_ptr<T[], AlignedFree>;

  template <typename T>
  static Array<T> zeros(size_t count) {
    void* memory = ::operator new(count * sizeof(T), std::align_val_t(kAlignment));
    return Array<T>(std::fill_n(static_cast<T*>(memory), count, T{}) - count);
  }

  void pack(const Weights& weights, size_t panel) {
    const size_t first = panel * kPanelColumns, group = kernels_.group;
    const size_t columns = std::min(kPanelColumns, outputs_ - first);
    const size_t across = weights.transposed ? weights.inputs : 1;
    const size_t down = weights.transposed ? 1 : weights.outputs;
    int8_t* packed = values_.get() + first * groups_ * group;
    for (size_t k = 0; k < weights.inputs; ++k) {
      const int8_t* row = weights.values + k * down + first * across;
      int8_t* to = packed + k / group * group * kPanelColumns + k % group;
      for (size_t c = 0; c < columns; ++c) {
        to[c * group] = row[c * across];
        starts_[first + c] -= (weights.zero_point + kernels_.shift) * row[c * across];
      }
    }
    float* to = constants_.get() + (2 + float_channels_) * first;
    std::copy_n(weights.scales + first, columns, to);
    if (weights.bias) std::copy_n(weights.bias + first, columns, to + kPanelColumns);
    for (size_t f = 0; f < float_channels_; ++f) {
      for (size_t c = 0; c < columns; ++c) {
        to[(2 + f) * kPanelColumns + c] = weights.float_weights[(first + c) * float_channels_ + f];
      }
    }
  }

  const InstructionSet& kernels_ = best_instruction_set();
  size_t outputs_, panels_, groups_, float_channels_;
  Finish finish_;
  Array<int8_t> values_;    // (panels, groups, kPanelColumns, group)
  Array<int32_t> starts_;   // (panels, kPanelColumns), cancel the zero point
  Array<float> constants_;  // (panels, 2 + float_channels, kPanelColumns)
};

}  // namespace fillmask
