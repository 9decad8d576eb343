// What both operators need of onnxruntime, on top of its own C++ interface.
#pragma once

#define ORT_API_MANUAL_INIT
#include "onnxruntime_cxx_api.h"

namespace fillmask {

constexpr uint32_t kApiVersion = 17;  // `ParallelFor` is the newest function
using ElementType = ONNXTensorElementDataType;
constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr auto kInt8 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
constexpr auto kInt64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;

// The operators, which live as long as the library.
const OrtCustomOp& int8_linear();
const OrtCustomOp& packed_attention();

inline void require(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

// A tensor, whose data onnxruntime owns. A missing optional input has no data.
struct Tensor {
  const void* data = nullptr;
  std::vector<int64_t> shape;

  // Throws std::runtime_error for a tensor of another type or rank.
  static Tensor read(Ort::ConstValue value, ElementType type, size_t rank, size_t input) {
    const auto info = value.GetTensorTypeAndShapeInfo();
    require(info.GetElementType() == type && info.GetDimensionsCount() == rank,
            "input " + std::to_string(input) + " must have element type " + std::to_string(type) +
                " and rank " + std::to_string(rank));
    static const char empty = 0;  // a tensor without elements may have no data
    const void* data = value.GetTensorRawData();
    return {data ? data : &empty, info.GetShape()};
  }

  explicit operator bool() const { return data; }
  size_t size(size_t axis) const { return static_cast<size_t>(shape[axis]); }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};

inline Tensor input(const Ort::KernelContext& call, size_t index, ElementType type, size_t rank) {
  const Ort::ConstValue value = call.GetInput(index);
  require(value != nullptr, "input " + std::to_string(index) + " is missing");
  return Tensor::read(value, type, rank, index);
}

inline float* output(const Ort::KernelContext& call, size_t index, std::vector<int64_t> shape) {
  return call.GetOutput(index, shape).GetTensorMutableData<float>();
}

// Calls `function(index)` for each index below `count` on the threads of the session.
template <typename Function>
void parallel_for(const Ort::KernelContext& call, size_t count, const Function& function) {
  auto run = [](void* data, size_t index) { (*static_cast<const Function*>(data))(index); };
  call.ParallelFor(run, count, 0, const_cast<Function*>(&function));
}

// Memory for the duration of a call, from the arena of the session.
class Scratch {
 public:
  Scratch(const Ort::KernelContext& call, size_t bytes) {
    static const auto place = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    allocator_.reset(call.GetAllocator(*place));
    // its own function `Alloc` may throw, which a library with another C++ runtime cannot catch
    Ort::ThrowOnError(Ort::GetApi().AllocatorAlloc(allocator_.get(), bytes, &memory_));
    if (bytes && !memory_) throw std::bad_alloc();
  }
  Scratch(const Scratch&) = delete;
  ~Scratch() { allocator_->Free(allocator_.get(), memory_); }
  float* numbers() const { return static_cast<float*>(memory_); }

 private:
  struct Release {
    void operator()(OrtAllocator* allocator) const { Ort::GetApi().ReleaseAllocator(allocator); }
  };
  std::unique_ptr<OrtAllocator, Release> allocator_;
  void* memory_ = nullptr;
};

// Calls a function that may throw, so that no error ends the process.
template <typename Function>
OrtStatusPtr as_status(const Function& function) noexcept {
  try {
    function();
    return nullptr;
  } catch (const std::exception& error) {
    return Ort::Status(error).release();
  }
}

// A kernel with a constructor from a node and `compute(call) const`, which may throw.
template <typename Kernel>
struct StatusKernel : Kernel {
  using Kernel::Kernel;
  OrtStatusPtr ComputeV2(OrtKernelContext* context) noexcept {
    return as_status([&] { this->compute(Ort::KernelContext(context)); });
  }
};

template <typename Op, typename Kernel>
struct Operator : Ort::CustomOpBase<Op, StatusKernel<Kernel>, true> {
  Operator() { this->version = kApiVersion; }
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info, void** kernel) const {
    return as_status([&] { *kernel = new StatusKernel<Kernel>(Ort::ConstKernelInfo(info)); });
  }
  ElementType GetOutputType(size_t) const { return kFloat; }
};

}  // namespace fillmask
