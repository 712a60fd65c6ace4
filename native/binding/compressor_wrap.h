// The engine's StreamCompressor as a JavaScript object. compressor.ts checks the arguments.
#pragma once

#include <napi.h>

#include <memory>

#include "addon_data.h"
#include "download/stream_compressor.h"

namespace capfleet::binding {

/// new Compressor(codec: number, level: number, hasSmallGroups: boolean). Methods as
/// StreamCompressor's:
///   write(bytes: Uint8Array): number
///   flush(): void
///   end(): void
///   next(): Promise<{slab, length} | undefined>   one at a time
///   close(): void                                 once, nothing may be called after it
class CompressorWrap : public Napi::ObjectWrap<CompressorWrap> {
 public:
  static Napi::Function define(Napi::Env env);

  explicit CompressorWrap(const Napi::CallbackInfo& info);
  ~CompressorWrap() override;

 private:
  Napi::Value write(const Napi::CallbackInfo& info);
  void flush(const Napi::CallbackInfo& info);
  void end(const Napi::CallbackInfo& info);
  Napi::Value next(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);
  void settle(Napi::Env env, Napi::Promise::Deferred deferred,
              const StreamCompressor::Answer& answer);

  const std::shared_ptr<MainThread> mainThread_;
  std::shared_ptr<StreamCompressor> compressor_;  ///< null once closed
  SlabBuffers buffers_;
};

}  // namespace capfleet::binding
