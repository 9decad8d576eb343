// Kernels of one instruction set: rounding of rows, products of bytes, and the float32 end of a
// layer. Instruction sets with fused multiply-adds compute the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fillmask {

constexpr size_t kPanelColumns = 64;  // outputs of a layer that one product computes
constexpr size_t kTileRows = 6;       // largest number of rows in one product
constexpr size_t kAlignment = 64;     // width of a vector register in bytes

enum class Activation { none, gelu_erf, gelu_tanh, silu };

// One row of float32 inputs, which become unsigned bytes around a zero point.
struct RowToRound {
  const float* values;
  const float* factors;  // one per value, or null for factors of 1
  size_t width;
  int zero_point;  // 128 for inputs of both signs, 16 for outputs of GELU
};

// The float32 end of a panel. Arrays have one entry for each column of the panel.
struct PanelEnd {
  const float* scales;
  const float* bias;
  const float* float_weights;  // (float_channels, kPanelColumns)
  size_t float_channels;
  size_t columns;  // number of outputs, at most kPanelColumns
  Activation activation;
};

// Attention of some queries to the tokens of their text, for one head. Rows have the distance
// `stride`, and a head has `width` columns, a multiple of 16.
struct Head {
  const float *queries, *keys, *values;
  size_t query_count, tokens, width, stride;
  float* scratch;  // Head::scratch_size(width, tokens) numbers
  float* outputs;

  static constexpr size_t scratch_size(size_t width, size_t tokens) {
    return (width + kTileRows) * padded(tokens) + kTileRows * width;
  }
  static constexpr size_t padded(size_t tokens) { return (tokens + 31) / 32 * 32; }
};

struct InstructionSet {
  const char* name;
  // Whether products are faster than those of onnxruntime.
  bool fast;
  // Number of consecutive inputs of a column in a panel. A panel has the shape
  // (inputs / group, kPanelColumns, group).
  size_t group;
  // Added to the rounded values, so that instructions for signed bytes can read them.
  int shift;

  // Rounds a row and returns its scale. `rounded` has space for a multiple of `group`.
  float (*round_row)(const RowToRound& row, uint8_t* rounded);

  // Computes `sums[r][c] = start[c] + rows[r] @ panel[:, c]` for at most kTileRows rows.
  void (*multiply)(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel,
                   size_t groups, const int32_t* start, int32_t* sums);

  // Computes the outputs of the rows of one product.
  void (*finish)(const PanelEnd& panel, const int32_t* sums, size_t count, const float* row_scales,
                 const float* floats, const float* residual, float* outputs, size_t stride);

  // Computes the outputs of a head.
  void (*attend)(const Head& head);
};

extern const InstructionSet kPortable;
#if defined(__x86_64__)
extern const InstructionSet kAvx512Vnni;
#elif defined(__aarch64__)
extern const InstructionSet kNeonDotProd;
extern const InstructionSet kNeonI8mm;
#endif

// Returns the fastest instruction set of this CPU.
const InstructionSet& best_instruction_set();

}  // namespace fillmask
