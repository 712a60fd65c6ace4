// The engine's import as a JavaScript function. import-capture-files.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// startImport({files, directory, segmentBytes, maxBytes, maxRatio}, onProgress): {finished:
/// Promise<ImportResult>, cancel(): void}; maxBytes may be undefined. The import runs on its own
/// thread, because it blocks for a long time.
Napi::Value startImport(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
