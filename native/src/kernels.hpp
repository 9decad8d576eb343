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

// The float32 end of a panel.
struct PanelEnd {
  const float* constants;  // (2 + float_channels, kPanelColumns): scales, bias, float weights
  size_t float_channels;
  size_t columns;  // number of outputs, at most kPanelColumns
};

// Computes the outputs of the rows of one product.
using Finish = void (*)(const PanelEnd& panel, const int32_t* sums, size_t count,
                        const float* row_scales, const float* floats, const float* residual,
                        float* outputs, size_t stride);

// Attention of some queries to the tokens of their text, for one head. Rows have the distance
// `stride`, and a head has `width` columns, a multiple of 16.
struct Head {
  const float *queries, *keys, *values;
  size_t query_count, tokens, width, stride;
  float* scratch;  // Head::scratch_size(width, tokens) numbers
  float* outputs;

  static constexpr size_t kQueries = 32;  // that one pass over the tokens serves
  static constexpr size_t scratch_size(size_t width, size_t tokens) {
    return (width + tokens) * kQueries;
  }
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

  // Rounds the products of a row's values and factors to unsigned bytes around a zero point, which
  // is 128 for inputs of both signs and 16 for outputs of GELU. Returns the scale of the row.
  float (*round_row)(const float* values, const float* factors, size_t width, int zero_point,
                     uint8_t* rounded);

  // Computes `sums[r][c] = start[c] + rows[r] @ panel[:, c]` for at most kTileRows rows. `sums` has
  // space for kTileRows rows.
  void (*multiply)(const uint8_t* rows, size_t stride, size_t count, const int8_t* panel,
                   size_t groups, const int32_t* start, int32_t* sums);

  // One for each activation.
  const Finish* finish;

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
