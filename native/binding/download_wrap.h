// The engine's Download as an object of JavaScript. addon.ts checks the arguments.
#pragma once

#include <napi.h>

#include <memory>
#include <unordered_map>

#include "addon_data.h"
#include "download/download.h"

namespace capfleet::binding {

/// Methods for JavaScript:
///   next(): Promise<{id, slab, length} | undefined>   one at a time
///   release(id): void
///   totals(): DownloadTotals
///   close(): void
///   linkType, snaplen: number
class DownloadWrap : public Napi::ObjectWrap<DownloadWrap> {
 public:
  /// Makes the class known to the environment.
  static void define(Napi::Env env);
  /// openDownload(options): Promise<DownloadWrap>. The indexes are read on a worker thread.
  static Napi::Value open(const Napi::CallbackInfo& info);

  explicit DownloadWrap(const Napi::CallbackInfo& info);
  ~DownloadWrap() override;

 private:
  Napi::Value next(const Napi::CallbackInfo& info);
  void release(const Napi::CallbackInfo& info);
  Napi::Value totals(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);
  Napi::Value linkType(const Napi::CallbackInfo& info);
  Napi::Value snaplen(const Napi::CallbackInfo& info);
  void settle(Napi::Env env, Napi::Promise::Deferred deferred, const Download::Answer& answer);
  Napi::Value handOut(Napi::Env env, const SlabPtr& slab);

  const std::shared_ptr<AddonData> data_;
  std::shared_ptr<Download> download_;
  std::unordered_map<uint32_t, SlabPtr> parts_;  ///< with JavaScript, by id
  uint32_t nextId_ = 0;
};

}  // namespace capfleet::binding
