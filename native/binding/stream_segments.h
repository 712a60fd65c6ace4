// The segments passed to a JavaScript function.
#pragma once

#include <napi.h>

#include <vector>

#include "store/segment_entry.h"

namespace capfleet::binding {

/// Reads streams of the form {folder, segments}: the folder of a port, and a Uint8Array of entries.
inline std::vector<StreamSegments> readStreamSegments(const Napi::Array& from) {
  std::vector<StreamSegments> streams(from.Length());
  for (uint32_t i = 0; i < from.Length(); i++) {
    const auto stream = from.Get(i).As<Napi::Object>();
    streams[i].folder = stream.Get("folder").As<Napi::String>().Utf8Value();
    const auto bytes = stream.Get("segments").As<Napi::Uint8Array>();
    streams[i].segments = parseSegmentEntries({bytes.Data(), bytes.ByteLength()});
  }
  return streams;
}

}  // namespace capfleet::binding
