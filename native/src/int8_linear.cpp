// The operator `Int8Linear` of the domain `fillmask`: up to three linear layers with one input.
//
//   y = activation(scale * (round(x * factors) @ weight) * weight_scales
//                  + floats @ float_weight.T + bias) + residual
//
// Inputs: 0 x (R, K) float32; 1 factors (K,) or none; 2 floats (R, F) or none; 3 channels (F,)
// int64 or none, the columns of x that are the floats, if they aren't given; 4 residual (R, N) or
// none, for a single output. Then for each output: weight (K, N) int8, or (N, K) where the
// attribute `transposed` is 1; weight_scales (N,); bias (N,) or none; float_weight (N, F) or none.
// All except x, floats and residual are constants.
//
// Attributes: zero_point, 128 or 16; activations, one per output: 0 none, 1 GELU, 2 GELU with tanh,
// 3 SiLU; transposed, 0 or 1.
#include "linear_layer.hpp"
#include "operators.hpp"

namespace fillmask {
namespace {

constexpr size_t kX = 0, kFactors = 1, kFloats = 2, kChannels = 3, kResidual = 4;
constexpr size_t kFirstLayer = 5, kLayerInputs = 4, kMaxOutputs = 3;
constexpr size_t kMaxInputs = 65536;  // the sums of 255 * 128 per input fit into 32 bits
constexpr size_t kRowsAtOnce = 32;    // that a thread rounds
constexpr size_t kRowsPerBlock = 96;  // whose rounded values stay in the cache of a core
constexpr size_t kRowsToShare = 24;   // from which a panel has work for two threads

size_t pieces(size_t whole, size_t piece) { return (whole + piece - 1) / piece; }

bool has(const Ort::ConstKernelInfo& node, size_t index) {
  return index < node.GetInputCount() && !node.GetInputName(index).empty();
}

Tensor constant(const Ort::ConstKernelInfo& node, size_t index, ElementType type, size_t rank) {
  if (!has(node, index)) return {};
  int is_constant = 0;
  const Ort::ConstValue value = node.GetTensorConstantInput(index, &is_constant);
  require(is_constant && value, "input " + std::to_string(index) + " must be a constant");
  return Tensor::read(value, type, rank, index);
}

class Int8Linear {
 public:
  explicit Int8Linear(const Ort::ConstKernelInfo& node)
      : zero_point_(static_cast<int>(node.GetAttribute<int64_t>("zero_point"))),
        has_floats_(has(node, kFloats)),
        has_residual_(has(node, kResidual)) {
    require(zero_point_ == 128 || zero_point_ == 16, "zero_point must be 128 or 16");
    const auto activations = node.GetAttributes<int64_t>("activations");
    const size_t outputs = node.GetOutputCount();
    require(activations.size() == outputs, "activations must have one entry per output");
    require(!has_residual_ || outputs == 1, "residual needs a single output");
    if (const Tensor channels = constant(node, kChannels, kInt64, 1)) {
      require(!has_floats_, "channels must be missing beside floats");
      channels_.assign(channels.as<int64_t>(), channels.as<int64_t>() + channels.size(0));
      float_channels_ = channels_.size();
    }
    for (size_t layer = 0; layer < outputs; ++layer) add_layer(node, layer, activations[layer]);
    for (const int64_t channel : channels_) {
      require(channel >= 0 && static_cast<size_t>(channel) < inputs_,
              "channels must be columns of x");
    }
    factors_.assign(inputs_, 1.0f);
    if (const Tensor factors = constant(node, kFactors, kFloat, 1)) {
      require(factors.size(0) == inputs_, "factors must have one entry per input");
      std::copy_n(factors.as<float>(), inputs_, factors_.begin());
    }
  }

  void compute(const Ort::KernelContext& call) const {
    const Tensor x = input(call, kX, kFloat, 2);
    const size_t rows = x.size(0);
    require(x.size(1) == inputs_, "x must have a column per input of the weights");
    Tensor given, residual;
    if (has_floats_) {
      given = input(call, kFloats, kFloat, 2);
      require(given.size(0) == rows && given.size(1) == float_channels_,
              "floats must have the rows of x and a column per channel");
    }
    if (has_residual_) {
      residual = input(call, kResidual, kFloat, 2);
      require(residual.size(0) == rows && residual.size(1) == layers_[0].outputs(),
              "residual must have the shape of the output");
    }
    std::vector<float*> outputs;
    for (const LinearLayer& layer : layers_) {
      const auto columns = static_cast<int64_t>(layer.outputs());
      outputs.push_back(output(call, outputs.size(), {x.shape[0], columns}));
    }
    if (rows == 0) return;

    const auto& kernels = best_instruction_set();
    const size_t stride = pieces(inputs_, kernels.group) * kernels.group;
    const size_t gathered = channels_.size();
    const Scratch scratch(call, rows * ((1 + gathered) * sizeof(float) + stride));
    float *scales = scratch.numbers(), *floats = scales + rows;
    auto* rounded = reinterpret_cast<uint8_t*>(floats + rows * gathered);
    const auto round_rows = [&](size_t block) {
      const size_t last = std::min(rows, (block + 1) * kRowsAtOnce);
      for (size_t row = block * kRowsAtOnce; row < last; ++row) {
        const float* values = x.as<float>() + row * inputs_;
        scales[row] = kernels.round_row(values, factors_.data(), inputs_, zero_point_,
                                        rounded + row * stride);
        for (size_t f = 0; f < gathered; ++f) floats[row * gathered + f] = values[channels_[f]];
      }
    };
    parallel_for(call, pieces(rows, kRowsAtOnce), round_rows);

    const RoundedRows input = {rounded, stride, scales, has_floats_ ? given.as<float>() : floats,
                               residual.as<float>()};
    const size_t least = rows >= kRowsToShare ? 2 : 1;
    const size_t blocks = std::max(pieces(rows, kRowsPerBlock), least);
    const size_t block_rows = pieces(pieces(rows, kTileRows), blocks) * kTileRows;
    parallel_for(call, panels_.size() * blocks, [&](size_t index) {
      // all rows of a panel follow each other, so that its weights stay in the cache
      const auto [layer, panel] = panels_[index / blocks];
      const size_t first = index % blocks * block_rows;
      layers_[layer].compute(input, panel, first, std::min(rows, first + block_rows),
                             outputs[layer]);
    });
  }

 private:
  void add_layer(const Ort::ConstKernelInfo& node, size_t layer, int64_t activation) {
    const size_t first = kFirstLayer + layer * kLayerInputs;
    const Tensor weight = constant(node, first, kInt8, 2);
    const Tensor scales = constant(node, first + 1, kFloat, 1);
    const Tensor bias = constant(node, first + 2, kFloat, 1);
    const Tensor float_weight = constant(node, first + 3, kFloat, 2);
    require(weight && scales, "each output needs weight and weight_scales");
    require(activation >= 0 && activation <= 3, "activations must be 0 to 3");
    const bool transposed = node.GetAttribute<int64_t>("transposed") != 0;
    const size_t inputs = weight.size(transposed), outputs = weight.size(!transposed);
    require(layer == 0 || inputs == inputs_, "all weights must have the same inputs");
    require(inputs >= 1 && inputs <= kMaxInputs && outputs >= 1,
            "a weight must have outputs, and 1 to 65536 inputs");
    require(scales.size(0) == outputs && (!bias || bias.size(0) == outputs),
            "weight_scales and bias must have one entry per output");
    if (float_weight) {
      if (has_floats_ && float_channels_ == 0) float_channels_ = float_weight.size(1);
      require(float_weight.size(0) == outputs && float_weight.size(1) == float_channels_,
              "float_weight must have a row per output and a column per channel");
    }
    inputs_ = inputs;
    layers_.emplace_back(Weights{weight.as<int8_t>(), transposed, inputs, outputs,
                                 scales.as<float>(), bias.as<float>(), float_weight.as<float>(),
                                 float_weight ? float_channels_ : 0,
                                 static_cast<Activation>(activation), zero_point_});
    for (size_t panel = 0; panel < layers_.back().panels(); ++panel) {
      panels_.emplace_back(layer, panel);
    }
  }

  int zero_point_;
  bool has_floats_, has_residual_;
  size_t inputs_ = 0, float_channels_ = 0;
  std::vector<float> factors_;
  std::vector<int64_t> channels_;
  std::vector<LinearLayer> layers_;
  std::vector<std::pair<size_t, size_t>> panels_;  // layer and its panel
};

struct Int8LinearOp : Operator<Int8LinearOp, Int8Linear> {
  const char* GetName() const { return "Int8Linear"; }
  size_t GetInputTypeCount() const { return kFirstLayer + kLayerInputs * kMaxOutputs; }
  ElementType GetInputType(size_t index) const {
    if (index == kChannels) return kInt64;
    return index >= kFirstLayer && (index - kFirstLayer) % kLayerInputs == 0 ? kInt8 : kFloat;
  }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(size_t index) const {
    const bool required = index == kX || index == kFirstLayer || index == kFirstLayer + 1;
    return required ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  }
  size_t GetOutputTypeCount() const { return kMaxOutputs; }
  OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(size_t index) const {
    return index ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
  }
};

}  // namespace

const OrtCustomOp& int8_linear() {
  static const Int8LinearOp op;
  return op;
}

}  // namespace fillmask
