// SPDX-License-Identifier: Apache-2.0
#include "model/artifact.h"

namespace ptxb {

std::string_view name(Binding binding) {
  switch (binding) {
    case Binding::Plain:
      return "plain";
    case Binding::TvmFfi:
      return "tvm-ffi";
    case Binding::Ptx:
      return "ptx";
  }
  return "";
}

}  // namespace ptxb
