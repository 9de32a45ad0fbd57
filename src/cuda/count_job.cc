// Owns counting executed machine instructions of one steady call, in process, by CUPTI's SASS
// metrics: two metrics for each instruction address. Joining them with a disassembly is backend/'s.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "cuda/bench.h"

namespace ptxb::cuda {

namespace {

constexpr std::array<const char*, 2> kMetrics = {"smsp__sass_inst_executed",
                                                 "smsp__sass_thread_inst_executed_pred_on"};

const CuptiFunctions& cupti() { return **load_cupti(); }

Result<void> check(CUptiResult status, std::string_view what) {
  if (status == CUPTI_SUCCESS) return {};
  const char* text = nullptr;
  cupti().cuptiGetResultString(status, &text);
  return harness_error("CUPTI " + std::string(what) + ": " +
                       (text != nullptr ? text : std::to_string(status)));
}

// Patches kernels while it lives; the destructor leaves the process as it was.
class SassMetrics {
 public:
  explicit SassMetrics(uint32_t device) : device_(device) {}
  SassMetrics(const SassMetrics&) = delete;
  SassMetrics& operator=(const SassMetrics&) = delete;
  ~SassMetrics() {
    if (context_abandoned()) return;
    if (enabled_) {
      CUpti_SassMetricsDisable_Params disable = {};
      disable.structSize = CUpti_SassMetricsDisable_Params_STRUCT_SIZE;
      cupti().cuptiSassMetricsDisable(&disable);
    }
    if (configured_) {
      CUpti_SassMetricsUnsetConfig_Params unset = {};
      unset.structSize = CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE;
      unset.deviceIndex = device_;
      cupti().cuptiSassMetricsUnsetConfig(&unset);
    }
  }

  Result<void> enable() {
    CUpti_Profiler_Initialize_Params initialise = {};
    initialise.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
    PTXB_CHECK_OK(check(cupti().cuptiProfilerInitialize(&initialise), "initialise"));
    CUpti_Device_GetChipName_Params chip = {};
    chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
    chip.deviceIndex = device_;
    PTXB_CHECK_OK(check(cupti().cuptiDeviceGetChipName(&chip), "chip name"));
    std::array<CUpti_SassMetrics_Config, kMetrics.size()> configs = {};
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      CUpti_SassMetrics_GetProperties_Params properties = {};
      properties.structSize = CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE;
      properties.pChipName = chip.pChipName;
      properties.pMetricName = kMetrics[i];
      PTXB_CHECK_OK(check(cupti().cuptiSassMetricsGetProperties(&properties), kMetrics[i]));
      ids_[i] = configs[i].metricId = properties.metric.metricId;
      configs[i].outputGranularity = CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU;
    }
    CUpti_SassMetricsSetConfig_Params set = {};
    set.structSize = CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE;
    set.numOfMetricConfig = configs.size();
    set.pConfigs = configs.data();
    set.deviceIndex = device_;
    PTXB_CHECK_OK(check(cupti().cuptiSassMetricsSetConfig(&set), "configuration"));
    configured_ = true;
    CUpti_SassMetricsEnable_Params enable = {};
    enable.structSize = CUpti_SassMetricsEnable_Params_STRUCT_SIZE;
    enable.enableLazyPatching = 1;  // only what runs in the range
    PTXB_CHECK_OK(check(cupti().cuptiSassMetricsEnable(&enable), "enable"));
    enabled_ = true;
    return {};
  }

  Result<std::vector<SassCount>> collect() {
    CUpti_SassMetricsGetDataProperties_Params properties = {};
    properties.structSize = CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE;
    PTXB_CHECK_OK(check(cupti().cuptiSassMetricsGetDataProperties(&properties), "data properties"));
    const size_t records = properties.numOfPatchedInstructionRecords;
    if (records == 0) return std::vector<SassCount>();
    // The header leaves open whether an instance is a value or a set of values: room for both.
    const size_t instances = properties.numOfInstances * kMetrics.size();
    std::vector<CUpti_SassMetrics_InstanceValue> values(records * instances);
    std::vector<CUpti_SassMetrics_Data> data(records);
    for (size_t i = 0; i < records; ++i) {
      data[i] = {};
      data[i].structSize = sizeof(CUpti_SassMetrics_Data);
      data[i].pInstanceValues = values.data() + i * instances;
    }
    CUpti_SassMetricsFlushData_Params flush = {};
    flush.structSize = CUpti_SassMetricsFlushData_Params_STRUCT_SIZE;
    flush.numOfPatchedInstructionRecords = records;
    flush.numOfInstances = properties.numOfInstances;
    flush.pMetricsData = data.data();
    PTXB_CHECK_OK(check(cupti().cuptiSassMetricsFlushData(&flush), "data"));
    std::map<std::pair<std::string, uint32_t>, SassCount>
        merged;  // by function and address, over repeated launches
    for (size_t i = 0; i < records; ++i) {
      const std::string function = data[i].functionName != nullptr ? data[i].functionName : "";
      SassCount& count = merged[{function, data[i].pcOffset}];
      count.function = function;
      count.offset_bytes = data[i].pcOffset;
      for (size_t j = 0; j < instances; ++j) {
        const CUpti_SassMetrics_InstanceValue& value = data[i].pInstanceValues[j];
        if (value.metricId == ids_[0]) count.warps += value.value;
        if (value.metricId == ids_[1]) count.threads += value.value;
      }
    }
    std::vector<SassCount> counts;
    for (auto& [place, count] : merged) counts.push_back(std::move(count));
    return counts;
  }

 private:
  uint32_t device_;
  bool configured_ = false, enabled_ = false;
  std::array<uint64_t, kMetrics.size()> ids_ = {};
};

}  // namespace

Result<WorkerResult> run_count(const Device& device, const WorkerJob& job, const Say& say) {
  WorkerResult result;
  result.steps = Json::object();
  PTXB_CHECK_OK(load_cupti());
  const double begin_s = now_s();
  double step_s = begin_s;
  const auto lap = [&](const char* step) {
    result.steps.set(step, now_s() - step_s);
    step_s = now_s();
    result.gpu_s = step_s - begin_s;
  };
  PTXB_TRY(std::unique_ptr<Bench> bench, Bench::make(device, job, say, result));
  if (!bench) return result;
  PTXB_CHECK_OK(bench->synchronise());
  lap("prepare");
  SassMetrics metrics(static_cast<uint32_t>(device.facts().ordinal));
  PTXB_CHECK_OK(metrics.enable());
  lap("enable");
  say("count");
  std::optional<Trouble> trouble =
      bench->replay().enqueue(bench->replay().plan().steady, Replay::Marking::Progress);
  if (!trouble) trouble = bench->replay().wait(job.run_timeout_s);
  lap("run");
  if (trouble) {
    note_trouble(*trouble, result);
    return result;
  }
  PTXB_TRY(result.sass, metrics.collect());
  lap("collect");
  PTXB_TRY(result.digest, bench->output_digest());
  return result;
}

}  // namespace ptxb::cuda
