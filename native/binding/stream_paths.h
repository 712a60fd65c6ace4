// The segments of a call of JavaScript.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

namespace capfleet::binding {

/// Paths of segments without ending, of each stream.
inline std::vector<std::vector<std::string>> readStreamPaths(const Napi::Array& from) {
  std::vector<std::vector<std::string>> streams(from.Length());
  for (uint32_t i = 0; i < from.Length(); i++) {
    const auto segments = from.Get(i).As<Napi::Array>();
    for (uint32_t j = 0; j < segments.Length(); j++) {
      streams[i].push_back(segments.Get(j).As<Napi::String>().Utf8Value());
    }
  }
  return streams;
}

}  // namespace capfleet::binding
