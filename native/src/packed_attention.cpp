// The operator `PackedAttention` of the domain `fillmask`: attention of each query to all tokens of
// its own text, without padding.
//
// Inputs: queries (S, D), keys (R, D) and values (R, D) float32; query_texts (S,) and key_texts
// (R,) int64, the text of each row. The texts of the keys ascend. A query of a text without tokens
// has zeros as its output (S, D). Attribute: heads, of D / heads columns, a multiple of 16.
#include <algorithm>

#include "kernels.hpp"
#include "operators.hpp"

namespace fillmask {
namespace {

class PackedAttention {
 public:
  explicit PackedAttention(const Ort::ConstKernelInfo& node)
      : heads_(static_cast<size_t>(node.GetAttribute<int64_t>("heads"))) {
    require(heads_ >= 1 && heads_ <= 4096, "heads must be from 1 to 4096");
  }

  void compute(const Ort::KernelContext& call) const {
    const Tensor queries = input(call, 0, kFloat, 2), keys = input(call, 1, kFloat, 2);
    const Tensor values = input(call, 2, kFloat, 2), query_texts = input(call, 3, kInt64, 1);
    const Tensor key_texts = input(call, 4, kInt64, 1);
    const size_t columns = queries.size(1), width = columns / heads_;
    require(width * heads_ == columns && width % 16 == 0 && width > 0,
            "queries must have a multiple of 16 columns per head");
    require(keys.size(1) == columns && values.shape == keys.shape,
            "keys and values must have the columns of the queries and equal shapes");
    require(query_texts.shape[0] == queries.shape[0] && key_texts.shape[0] == keys.shape[0],
            "each row must have a text");
    float* outputs = output(call, 0, queries.shape);

    struct Item {  // queries of a text that follow each other
      size_t query, queries, token, tokens, scratch;
    };
    std::vector<Item> items;
    size_t numbers = 0;
    const auto *first = key_texts.as<int64_t>(), *last = first + keys.size(0);
    require(std::is_sorted(first, last), "the texts of the keys must ascend");
    const auto *text = query_texts.as<int64_t>(), *end = text + queries.size(0);
    for (size_t query = 0, count = 0; text < end; text += count, query += count) {
      count = static_cast<size_t>(std::find_if(text, end, [=](int64_t t) { return t != *text; }) -
                                  text);
      const auto [from, to] = std::equal_range(first, last, *text);
      const auto token = static_cast<size_t>(from - first), tokens = static_cast<size_t>(to - from);
      if (tokens == 0) {
        std::fill_n(outputs + query * columns, count * columns, 0.0f);
        continue;
      }
      items.push_back({query, count, token, tokens, numbers});
      numbers += heads_ * Head::scratch_size(width, tokens);
    }
    const Scratch scratch(call, numbers * sizeof(float));
    parallel_for(call, items.size() * heads_, [&](size_t index) {
      const Item& item = items[index / heads_];
      const size_t head = index % heads_, query = item.query * columns + head * width;
      const size_t token = item.token * columns + head * width;
      const size_t own = item.scratch + head * Head::scratch_size(width, item.tokens);
      best_instruction_set().attend({queries.as<float>() + query, keys.as<float>() + token,
                                     values.as<float>() + token, item.queries, item.tokens, width,
                                     columns, scratch.numbers() + own, outputs + query});
    });
  }

 private:
  size_t heads_;
};

struct PackedAttentionOp : Operator<PackedAttentionOp, PackedAttention> {
  const char* GetName() const { return "PackedAttention"; }
  size_t GetInputTypeCount() const { return 5; }
  ElementType GetInputType(size_t index) const { return index < 3 ? kFloat : kInt64; }
  size_t GetOutputTypeCount() const { return 1; }
};

}  // namespace

const OrtCustomOp& packed_attention() {
  static const PackedAttentionOp op;
  return op;
}

}  // namespace fillmask
