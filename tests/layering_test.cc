// Enforces docs/architecture.md's table of rooms: a room includes only itself and rooms above it in the table.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace ptxb {
namespace {

// Low to high. A few pairs are forbidden although the order allows them: the "never" column of the table.
const std::vector<std::string> kRooms = {"base", "model", "os",   "task", "arch", "ptx",     "emu",  "timing",
                                         "build", "shim", "backend", "cuda", "eval", "llm", "agent", "store",
                                         "report", "adapt", "serve", "app"};
const std::map<std::string, std::set<std::string>> kForbidden = {
    {"os", {"task", "arch", "ptx", "emu"}},   {"task", {"os"}},
    {"arch", {"task", "os"}},                 {"ptx", {"os", "task", "arch"}},
    {"emu", {"os", "task"}},                  {"timing", {"os", "task", "arch", "ptx", "emu", "model"}},
    {"build", {"task", "emu", "timing"}},     {"shim", {"emu", "timing"}},
    {"cuda", {"os", "emu", "build", "shim"}},
};
// Third-party headers have one door each: header prefix -> files (or room folders) that may include it.
const std::map<std::string, std::vector<std::string>> kDoors = {
    {"nlohmann/", {"base/json.cc"}},
    {"openssl/", {"base/hash.cc"}},
    {"seccomp.h", {"os/"}},
    {"CLI/", {"app/"}},
    {"cuda.h", {"cuda/", "shim/"}},
    {"cuda_runtime", {"cuda/", "shim/"}},
    {"cublas", {"cuda/"}},
    {"cudnn", {"cuda/"}},
    {"cupti", {"cuda/"}},
};

struct Include {
  std::string file, room, included;
  bool quoted = false;
  int line = 0;
};

std::vector<Include> includes() {
  std::vector<Include> out;
  Path root = Path(PTXB_SOURCE_DIR) / "src";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    std::string extension = entry.path().extension().string();
    if (extension != ".cc" && extension != ".h" && extension != ".cu" && extension != ".cuh") continue;
    std::string file = std::filesystem::relative(entry.path(), root).string();
    if (file.find("testdata/") != std::string::npos) continue;
    auto text = read_file(entry.path());
    EXPECT_TRUE(text) << file;
    static const std::regex kInclude(R"re(^\s*#\s*include\s*([<"])([^">]+)[">])re");
    int line = 0;
    for (std::string_view each : split_lines(*text)) {
      ++line;
      std::match_results<std::string_view::const_iterator> match;
      if (!std::regex_search(each.begin(), each.end(), match, kInclude)) continue;
      out.push_back({file, file.substr(0, file.find('/')), match[2].str(), match[1].str() == "\"", line});
    }
  }
  return out;
}

size_t rank(const std::string& room) {
  for (size_t i = 0; i < kRooms.size(); ++i) {
    if (kRooms[i] == room) return i;
  }
  return kRooms.size();
}

TEST(Layering, RoomsIncludeOnlyRoomsBelowThem) {
  std::vector<Include> all = includes();
  EXPECT_GT(all.size(), 100u);
  for (const Include& i : all) {
    ASSERT_LT(rank(i.room), kRooms.size()) << i.file << ": room missing from the table";
    if (!i.quoted) continue;
    std::string target = i.included.substr(0, i.included.find('/'));
    if (i.included.find('/') == std::string::npos || rank(target) == kRooms.size()) continue;
    EXPECT_LE(rank(target), rank(i.room)) << i.file << ":" << i.line << " includes upwards: " << i.included;
    auto forbidden = kForbidden.find(i.room);
    if (forbidden != kForbidden.end()) {
      EXPECT_FALSE(forbidden->second.contains(target)) << i.file << ":" << i.line << " must not include " << i.included;
    }
  }
}

TEST(Layering, EveryOutsideLibraryHasOneDoor) {
  for (const Include& i : includes()) {
    for (const auto& [prefix, doors] : kDoors) {
      if (!i.included.starts_with(prefix) || i.file.ends_with("_test.cc")) continue;
      bool allowed = false;
      for (const std::string& door : doors) allowed |= i.file.starts_with(door);
      EXPECT_TRUE(allowed) << i.file << ":" << i.line << " includes " << i.included << " outside its door";
    }
  }
}

TEST(Layering, SourcesOpenWithTheLicence) {
  Path root = Path(PTXB_SOURCE_DIR) / "src";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    std::string extension = entry.path().extension().string();
    if (extension != ".cc" && extension != ".h" && extension != ".cu") continue;
    if (entry.path().string().find("testdata") != std::string::npos) continue;
    auto text = read_file(entry.path());
    ASSERT_TRUE(text);
    EXPECT_NE(text->substr(0, 1200).find("SPDX-License-Identifier: Apache-2.0"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace ptxb
