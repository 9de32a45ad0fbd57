// Owns the cuBLASLt baseline of C = A B^T on bf16 with fp32 accumulation: the heuristic's
// candidates as variants. Never chooses among them; timing measures them under the regime in which
// they are used.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "cuda/baseline.h"

namespace ptxb::cuda {

namespace {

// NVIDIA recommends 32 MiB of workspace on Hopper and later (cuBLAS documentation,
// cublasSetWorkspace).
constexpr uint64_t kWorkspaceBytes = 32u << 20;
constexpr int kVariants = 8;

Result<void> check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return harness_error("cuBLASLt " + std::string(what) + ": status " +
                       std::to_string(static_cast<int>(status)));
}

const CublasLtFunctions& lt() { return **load_cublaslt(); }

struct LtHandle {
  using Value = cublasLtHandle_t;
  static Value none() { return nullptr; }
  static void close(Value value) noexcept {
    if (!context_abandoned()) lt().cublasLtDestroy(value);
  }
};
struct LtDescription {
  using Value = cublasLtMatmulDesc_t;
  static Value none() { return nullptr; }
  static void close(Value value) noexcept {
    if (!context_abandoned()) lt().cublasLtMatmulDescDestroy(value);
  }
};
struct LtLayout {
  using Value = cublasLtMatrixLayout_t;
  static Value none() { return nullptr; }
  static void close(Value value) noexcept {
    if (!context_abandoned()) lt().cublasLtMatrixLayoutDestroy(value);
  }
};
struct LtPreference {
  using Value = cublasLtMatmulPreference_t;
  static Value none() { return nullptr; }
  static void close(Value value) noexcept {
    if (!context_abandoned()) lt().cublasLtMatmulPreferenceDestroy(value);
  }
};

// One handle a process: creating it loads the library's kernels.
Result<cublasLtHandle_t> shared_handle() {
  static Handle<LtHandle> handle;
  if (!handle) {
    cublasLtHandle_t made = nullptr;
    PTXB_CHECK_OK(check(lt().cublasLtCreate(&made), "handle"));
    handle.reset(made);
  }
  return handle.get();
}

class CublasLtGemm : public Baseline {
 public:
  Result<void> set_up(Bench& bench) {
    const auto& axes = bench.job().task.axes;
    const auto m = static_cast<uint64_t>(axes.at("M")), n = static_cast<uint64_t>(axes.at("N")),
               k = static_cast<uint64_t>(axes.at("K"));
    a_ = bench.input(0);
    b_ = bench.input(1);
    c_ = bench.output(0);
    PTXB_TRY(handle_, shared_handle());
    PTXB_TRY(workspace_, bench.device().allocate(kWorkspaceBytes, "cuBLASLt workspace"));
    // Row-major C[m,n] = A[m,k] B[n,k]^T is column-major C'[n,m] = (B'[k,n])^T A'[k,m] on the same
    // bytes.
    cublasLtMatmulDesc_t description = nullptr;
    PTXB_CHECK_OK(check(lt().cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                        "description"));
    description_.reset(description);
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    PTXB_CHECK_OK(
        check(lt().cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA,
                                                  &transposed, sizeof transposed),
              "transA"));
    PTXB_CHECK_OK(check(lt().cublasLtMatmulDescSetAttribute(
                            description, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain),
                        "transB"));
    PTXB_CHECK_OK(make_layout(left_, k, n, k));
    PTXB_CHECK_OK(make_layout(right_, k, m, k));
    PTXB_CHECK_OK(make_layout(out_, n, m, n));
    return ask_heuristic();
  }

  std::string library() const override {
    const size_t version = lt().cublasLtGetVersion();
    return "cuBLASLt " + std::to_string(version / 10000) + "." +
           std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  }
  uint32_t variants() const override { return static_cast<uint32_t>(found_.size()); }
  double workspace_bytes(uint32_t variant) const override {
    return static_cast<double>(found_[variant].workspaceSize);
  }

  std::string describe(uint32_t variant) const override {
    const cublasLtMatmulAlgo_t& algorithm = found_[variant].algo;
    const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t attribute,
                            size_t bytes) -> std::string {
      uint32_t value = 0;
      size_t written = 0;
      if (lt().cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, bytes,
                                                    &written) != CUBLAS_STATUS_SUCCESS) {
        return "?";
      }
      return std::to_string(value);
    };
    return "algo " + number(CUBLASLT_ALGO_CONFIG_ID, 4) + " tile " +
           number(CUBLASLT_ALGO_CONFIG_TILE_ID, 4) + " stages " +
           number(CUBLASLT_ALGO_CONFIG_STAGES_ID, 4) + " splitk " +
           number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4) + " swizzle " +
           number(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4) + " cluster " +
           number(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2) + " inner " +
           number(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2) + " custom " +
           number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4);
  }

  Result<void> enqueue(uint32_t variant, CUstream stream) override {
    const float one = 1, zero = 0;
    return check(lt().cublasLtMatmul(handle_, description_.get(), &one, as_pointer(b_), left_.get(),
                                     as_pointer(a_), right_.get(), &zero, as_pointer(c_),
                                     out_.get(), as_pointer(c_), out_.get(), &found_[variant].algo,
                                     as_pointer(workspace_.get()), kWorkspaceBytes, stream),
                 "matmul");
  }

 private:
  static void* as_pointer(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
  }  // NOLINT

  Result<void> make_layout(Handle<LtLayout>& layout, uint64_t rows, uint64_t columns,
                           uint64_t leading) {
    cublasLtMatrixLayout_t made = nullptr;
    PTXB_CHECK_OK(check(lt().cublasLtMatrixLayoutCreate(&made, CUDA_R_16BF, rows, columns,
                                                        static_cast<int64_t>(leading)),
                        "layout"));
    layout.reset(made);
    return {};
  }

  Result<void> ask_heuristic() {
    cublasLtMatmulPreference_t made = nullptr;
    PTXB_CHECK_OK(check(lt().cublasLtMatmulPreferenceCreate(&made), "preference"));
    const Handle<LtPreference> preference(made);
    const uint64_t limit = kWorkspaceBytes;
    PTXB_CHECK_OK(check(lt().cublasLtMatmulPreferenceSetAttribute(
                            made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit),
                        "preference"));
    std::array<cublasLtMatmulHeuristicResult_t, kVariants> results = {};
    int count = 0;
    PTXB_CHECK_OK(check(lt().cublasLtMatmulAlgoGetHeuristic(
                            handle_, description_.get(), left_.get(), right_.get(), out_.get(),
                            out_.get(), made, kVariants, results.data(), &count),
                        "heuristic"));
    for (int i = 0; i < count; ++i) {
      if (results[static_cast<size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
        found_.push_back(results[static_cast<size_t>(i)]);
    }
    if (found_.empty()) return harness_error("cuBLASLt: the heuristic offers no algorithm");
    return {};
  }

  cublasLtHandle_t handle_ = nullptr;
  Handle<LtDescription> description_;
  Handle<LtLayout> left_, right_, out_;
  DeviceMemory workspace_;
  CUdeviceptr a_ = 0, b_ = 0, c_ = 0;
  std::vector<cublasLtMatmulHeuristicResult_t> found_;
};

}  // namespace

Result<std::unique_ptr<Baseline>> make_cublaslt_gemm(Bench& bench, std::string& missing) {
  const Definition& definition = bench.job().task.definition;
  if (definition.reference != "native:gemm_nt" || definition.inputs.size() != 2 ||
      definition.outputs.size() != 1 || definition.inputs[0].dtype != DType::BF16 ||
      definition.outputs[0].dtype != DType::BF16) {
    missing = "cuBLASLt is a baseline for bf16 GEMM only";
    return std::unique_ptr<Baseline>();
  }
  if (const auto loaded = load_cublaslt(); !loaded) {
    missing = loaded.error().message;
    return std::unique_ptr<Baseline>();
  }
  auto baseline = std::make_unique<CublasLtGemm>();
  PTXB_CHECK_OK(baseline->set_up(bench));
  return std::unique_ptr<Baseline>(std::move(baseline));
}

}  // namespace ptxb::cuda
