// The engine's import as a call of JavaScript. import-capture-files.ts checks the
// arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// startImport({files, directory, segmentBytes, maxBytes, maxRatio}, onProgress): {finished:
/// Promise<ImportResult>, cancel(): void}; maxBytes may be undefined. The import runs on a thread
/// of its own, because it blocks for long.
Napi::Value startImport(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
