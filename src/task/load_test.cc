// SPDX-License-Identifier: Apache-2.0
#include "task/load.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "task/work.h"

namespace ptxb {
namespace {

const Dataset& shipped() {
  static const Dataset dataset = [] {
    auto loaded = load_dataset(Path(PTXB_SOURCE_DIR) / "tasks");
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? *loaded : Dataset{};
  }();
  return dataset;
}

TEST(Load, PublishedSetIsComplete) {
  size_t gemm = 0, gemm_workloads = 0, attention = 0;
  for (const Definition& definition : shipped().definitions) {
    const size_t rows = shipped().workloads_of(definition.name).size();
    if (definition.op_type == "gemm") ++gemm, gemm_workloads += rows;
    if (definition.op_type == "mha") {
      ++attention;
      EXPECT_EQ(rows, 6u);
    }
    EXPECT_TRUE(bind_task(shipped(), definition.name, "", ShapeChoice::Emulator))
        << definition.name;
    EXPECT_EQ(definition.targets.size(), 2u);
    EXPECT_EQ(definition.neighbours.size(), 2u);
  }
  EXPECT_EQ(gemm, 17u);
  EXPECT_EQ(gemm_workloads, 82u);
  EXPECT_EQ(attention, 2u);
}

TEST(Load, FilesAreWhatTheScriptMakes) {
  const std::string command = "python3 '" PTXB_SOURCE_DIR "/scripts/make_tasks.py' --check";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(Bind, HeadlineIsThePublishedWorkload) {
  const struct {
    const char* name;
    const char* uuid;
    const char* shape;
  } cases[] = {{"gemm_n7168_k5120", "94920358-01a8-4c5b-9209-3103fd490e94", "M=8192"},
               {"mha_with_lse_d128", "bc38b351-d595-451b-9153-8e225702e53b", "S=4096"},
               {"mha_with_lse_d128_causal", "6d2f67a7-225a-4af5-87d3-cbb99b496325", "S=4096"}};
  for (const auto& expected : cases) {
    auto task = bind_task(shipped(), expected.name, "");
    ASSERT_TRUE(task) << task.error().message;
    EXPECT_EQ(task->workload.uuid, expected.uuid);
    EXPECT_EQ(shape_text(*task), expected.shape);
  }
}

TEST(Bind, SelectorIsAUuidAPrefixOrAxes) {
  const char* name = "gemm_n7168_k5120";
  EXPECT_EQ(shape_text(*bind_task(shipped(), name, "3817345d-2b16-47dc-ae55-710bf42cfd86")),
            "M=70");
  EXPECT_EQ(shape_text(*bind_task(shipped(), name, "3817345d")), "M=70");
  EXPECT_EQ(bind_task(shipped(), name, "M=70")->workload.uuid,
            "3817345d-2b16-47dc-ae55-710bf42cfd86");
  auto ad_hoc = bind_task(shipped(), name, " M = 128 ");
  ASSERT_TRUE(ad_hoc);
  EXPECT_EQ(ad_hoc->workload.uuid, "M=128");
  EXPECT_EQ(ad_hoc->shape(ad_hoc->definition.outputs[0]), (std::vector<int64_t>{128, 7168}));
  EXPECT_EQ(ad_hoc->size_bytes(ad_hoc->definition.inputs[1]), 7168 * 5120 * 2);
  EXPECT_EQ(shape_text(*bind_task(shipped(), name, "", ShapeChoice::Emulator)), "M=128");
  EXPECT_EQ(shape_text(*at_axes(shipped(), *ad_hoc, {{"M", 3}})), "M=3");
  EXPECT_EQ(neighbours(shipped(), *ad_hoc).size(), 2u);
}

TEST(Bind, SaysWhatIsWrongAndWhatWouldBeRight) {
  const struct {
    const char *name, *selector, *message;
  } cases[] = {
      {"gemm_n7168_k512", "", "did you mean gemm_n7168_k5120?"},
      {"gemm_n7168_k5120", "M=0", "must be within 1 and 16777216, got 0; published: M=70 M=232"},
      {"gemm_n7168_k5120", "M=99999999", "must be within"},
      {"gemm_n7168_k5120", "N=4", "is constant (7168)"},
      {"gemm_n7168_k5120", "m=4", "did you mean M?"},
      {"gemm_n7168_k5120", "M=abc", "expected AXIS=WHOLE NUMBER"},
      {"gemm_n7168_k5120", "M=1,M=2", "given twice"},
      {"gemm_n7168_k5120", "M=16777216", "larger than 64 GiB"},
      {"gemm_n7168_k5120", "94920358-01a8-4c5b-9209-3103fd490e95",
       "did you mean 94920358-01a8-4c5b-9209-3103fd490e94?"},
      {"mha_with_lse_d128", "3817345d", "has no workload"},
  };
  for (const auto& bad : cases) {
    auto task = bind_task(shipped(), bad.name, bad.selector);
    ASSERT_FALSE(task) << bad.selector;
    EXPECT_NE(task.error().message.find(bad.message), std::string::npos) << task.error().message;
  }
}

constexpr const char* kDefinition = R"({
  "name": "toy", "op_type": "gemm",
  "axes": {
    "M": {"type": "var"},
    "N": {"type": "const", "value": 8},
    "K": {"type": "const", "value": 16}
  },
  "inputs": {
    "A": {"shape": ["M", "K"], "dtype": "bfloat16"},
    "B": {"shape": ["N", "K"], "dtype": "bfloat16"}
  },
  "outputs": {"C": {"shape": ["M", "N"], "dtype": "bfloat16"}},
  "reference": "native:gemm_nt"
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Definition, FaultsNameFileLineAndField) {
  ASSERT_TRUE(parse_definition(kDefinition, "toy.json"));
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {R"("dtype": "bfloat16")", R"("dtype": "bfloat17")",
       "toy.json:9: inputs.A.dtype: unknown dtype 'bfloat17'"},
      {R"(["N", "K"])", R"(["N", "Q"])", "toy.json:10: inputs.B.shape[1]: unknown axis 'Q'"},
      {R"("value": 16)", R"("value": 0)",
       "toy.json:6: axes.K.value: expected a whole number within 1"},
      {R"("value": 16)", R"("value": 1.5)", "toy.json:6: axes.K.value: expected a whole number"},
      {R"("type": "var")", R"("type": "expr")",
       "toy.json:4: axes.M.type: expected const or var, got 'expr'"},
      {R"("type": "var")", R"("type": "var", "value": 3)",
       "toy.json:4: axes.M.value: a variable axis has no value"},
      {R"("reference")", R"("referense")",
       "toy.json:13: referense: unknown field; did you mean reference?"},
      {R"("op_type": "gemm",)", "", "toy.json:1: misses the field op_type"},
      {R"("name": "toy")", R"("name": "../toy")", "toy.json:2: name: is no name"},
      {R"("outputs": {"C")", R"("outputs": {"A")", "toy.json:12: outputs.A: is an input too"},
      {R"("reference": "native:gemm_nt")",
       R"("reference": "native:gemm_nt", "ptxbench": {"emulator_axes": {"N": 8}})",
       "ptxbench.emulator_axes.N: is constant"},
      {R"("reference": "native:gemm_nt")",
       R"("reference": "native:gemm_nt", "ptxbench": {"neighbours": [{}]})",
       "ptxbench.neighbours[0]: misses the variable axis M"},
      {R"("reference": "native:gemm_nt")",
       R"("reference": "x", "ptxbench": {"tolerance": {"rtol": -1}})",
       "ptxbench.tolerance.rtol: expected a number"},
      {kDefinition, "version https://git-lfs.github.com/spec/v1\noid sha256:0",
       "toy.json:1: is a Git LFS pointer"},
      {kDefinition, "[]", "toy.json:1: expected an object"},
  };
  for (const auto& bad : cases) {
    auto definition = parse_definition(replaced(kDefinition, bad.from, bad.to), "toy.json");
    ASSERT_FALSE(definition) << bad.to;
    EXPECT_EQ(definition.error().code, ErrorCode::BadInput);
    EXPECT_NE(definition.error().message.find(bad.message), std::string::npos)
        << definition.error().message;
  }
}

TEST(Workloads, FaultsNameFileLineAndField) {
  const Definition definition = *parse_definition(kDefinition, "toy.json");
  const std::string row =
      R"({"definition": "toy", "workload": {"uuid": "u1", "axes": {"M": 5}, "inputs": )"
      R"({"A": {"type": "random"}, "B": {"type": "random"}}}})";
  ASSERT_EQ(parse_workloads(row + "\n\n", definition, "toy.jsonl")->size(), 1u);
  const std::string blob = R"({"type": "safetensors", "path": "PATH", "tensor_key": "a"})";
  const std::string random = R"({"type": "random"})";
  ASSERT_TRUE(parse_workloads(replaced(row, random, replaced(blob, "PATH", "./blob/a.safetensors")),
                              definition, "toy.jsonl"));
  const std::array<std::array<std::string, 3>, 12> cases = {{
      {R"("toy")", R"("other")", "toy.jsonl:2: definition: expected toy, got 'other'"},
      {R"({"M": 5})", "{}", "toy.jsonl:2: workload.axes: misses the variable axis M"},
      {R"({"M": 5})", R"({"M": 5, "N": 8})", "toy.jsonl:2: workload.axes.N: is constant"},
      {R"({"M": 5})", R"({"M": "5"})", "toy.jsonl:2: workload.axes.M: expected a whole number"},
      {R"({"M": 5})", R"({"M": -5})", "toy.jsonl:2: workload.axes.M: expected a whole number"},
      {R"(, "B": {"type": "random"})", "", "toy.jsonl:2: workload.inputs: misses the input B"},
      {R"("B": {)", R"("X": {)",
       "toy.jsonl:2: workload.inputs.X: the definition has no such input"},
      {random, R"({"type": "zeros"})",
       "toy.jsonl:2: workload.inputs.A.type: expected random, scalar or safetensors"},
      {random, R"({"type": "scalar", "value": 1})",
       "toy.jsonl:2: workload.inputs.A: a tensor with a shape cannot be a scalar"},
      {random, replaced(blob, "PATH", "/etc/passwd"),
       "toy.jsonl:2: workload.inputs.A.path: is absolute"},
      {random, replaced(blob, "PATH", "blob/../../x"),
       "toy.jsonl:2: workload.inputs.A.path: leaves the dataset"},
      {R"("u1")", R"("u0")", "toy.jsonl:2: workload.uuid: a second workload with the uuid u0"},
  }};
  for (const auto& [from, to, message] : cases) {
    const std::string text = replaced(row, "u1", "u0") + "\n" + replaced(row, from, to) + "\n";
    auto workloads = parse_workloads(text, definition, "toy.jsonl");
    ASSERT_FALSE(workloads) << to;
    EXPECT_NE(workloads.error().message.find(message), std::string::npos)
        << workloads.error().message;
  }
}

TEST(Load, DatasetFaultsAreOneError) {
  auto folder = TempFolder::make("dataset");
  ASSERT_TRUE(folder);
  const Path root = folder->path();
  EXPECT_FALSE(load_dataset(root / "absent"));
  ASSERT_TRUE(write_file(root / "definitions/gemm/toy.json", kDefinition));
  EXPECT_TRUE(load_dataset(root));
  ASSERT_TRUE(write_file(root / "definitions/other/twin.json", kDefinition));
  EXPECT_NE(
      load_dataset(root).error().message.find("toy is defined in definitions/gemm/toy.json too"),
      std::string::npos);
  std::filesystem::remove_all(root / "definitions/other");
  ASSERT_TRUE(
      write_file(root / "definitions/gemm/bad.json",
                 replaced(replaced(kDefinition, "\"toy\"", "\"bad\""), "gemm_nt", "gemm_nn")));
  EXPECT_NE(load_dataset(root).error().message.find(
                "no native reference 'native:gemm_nn'; did you mean native:gemm_nt?"),
            std::string::npos);
  std::filesystem::remove(root / "definitions/gemm/bad.json");
  ASSERT_TRUE(write_file(root / "definitions/gemm/bad.json",
                         replaced(replaced(kDefinition, "\"toy\"", "\"bad\""),
                                  R"("shape": ["M", "N"])", R"("shape": ["N", "M"])")));
  EXPECT_NE(load_dataset(root).error().message.find("native:gemm_nt needs inputs"),
            std::string::npos);
  std::filesystem::remove(root / "definitions/gemm/bad.json");
  ASSERT_TRUE(write_file(root / "workloads/gemm/nobody.jsonl", ""));
  EXPECT_NE(
      load_dataset(root).error().message.find("workloads of a definition that does not exist"),
      std::string::npos);
  std::filesystem::remove(root / "workloads/gemm/nobody.jsonl");
  std::filesystem::create_symlink("/etc/hostname", root / "definitions/gemm/link.json");
  EXPECT_NE(load_dataset(root).error().message.find("leaves the dataset"), std::string::npos);
}

TEST(Work, CountsArePublished) {
  const Work gemm = work_of(*bind_task(shipped(), "gemm_n7168_k5120", ""));
  EXPECT_DOUBLE_EQ(gemm.matrix_flops, 2.0 * 8192 * 7168 * 5120);
  EXPECT_DOUBLE_EQ(gemm.bytes, 2.0 * (8192.0 * 5120 + 7168.0 * 5120 + 8192.0 * 7168));
  const Work attention = work_of(*bind_task(shipped(), "mha_with_lse_d128", ""));
  EXPECT_DOUBLE_EQ(attention.matrix_flops, 4.0 * 4 * 48 * 4096 * 4096 * 128);
  EXPECT_DOUBLE_EQ(attention.bytes, 4.0 * 4 * 48 * 4096 * 128 * 2 + 4.0 * 48 * 4096 * 4);
  EXPECT_DOUBLE_EQ(work_of(*bind_task(shipped(), "mha_with_lse_d128_causal", "")).matrix_flops,
                   attention.matrix_flops / 2);
}

}  // namespace
}  // namespace ptxb
