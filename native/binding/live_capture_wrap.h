// The engine's LiveCapture as a JavaScript object. live-capture.ts checks the arguments.
#pragma once

#include <napi.h>

#include <memory>

#include "addon_data.h"
#include "capture/live_capture.h"

namespace capfleet::binding {

/// Methods for JavaScript, as in live-capture.ts:
///   start(folder): Promise<void>
///   roll(folder), stop(): Promise<LiveStream[]>
///   takeFinished(): LiveStream[]
///   counts(): LiveCounts
///   close(): void
class LiveCaptureWrap : public Napi::ObjectWrap<LiveCaptureWrap> {
 public:
  /// Defines the class in the environment.
  static void define(Napi::Env env);
  /// openLiveCapture(options): Promise<LiveCaptureWrap>.
  static Napi::Value open(const Napi::CallbackInfo& info);

  explicit LiveCaptureWrap(const Napi::CallbackInfo& info);

 private:
  Napi::Value start(const Napi::CallbackInfo& info);
  Napi::Value roll(const Napi::CallbackInfo& info);
  Napi::Value stop(const Napi::CallbackInfo& info);
  Napi::Value takeFinished(const Napi::CallbackInfo& info);
  Napi::Value counts(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  const std::shared_ptr<AddonData> data_;
  std::shared_ptr<LiveCapture> capture_;
};

}  // namespace capfleet::binding
