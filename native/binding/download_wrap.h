// The engine's Download as a JavaScript object. addon.ts checks the arguments.
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
  /// Defines the class in the environment.
  static void define(Napi::Env env);
  /// openDownload(options): {opened: Promise<DownloadWrap>, cancel(): void}. Indexes are read on
  /// worker threads; cancel() stops that soon, and only has an effect before the promise is
  /// settled.
  static Napi::Value open(const Napi::CallbackInfo& info);

  explicit DownloadWrap(const Napi::CallbackInfo& info);
  ~DownloadWrap() override;

 private:
  void dropWhenDone();
  Napi::Value next(const Napi::CallbackInfo& info);
  void release(const Napi::CallbackInfo& info);
  Napi::Value totals(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);
  Napi::Value linkType(const Napi::CallbackInfo& info);
  Napi::Value snaplen(const Napi::CallbackInfo& info);
  void settle(Napi::Env env, Napi::Promise::Deferred deferred, const Download::Answer& answer);
  Napi::Value handOut(Napi::Env env, const SlabPtr& slab);

  const std::shared_ptr<AddonData> data_;
  /// Null once it is closed and all its parts have been returned.
  std::shared_ptr<Download> download_;
  const uint32_t linkTypeWord_;
  const uint32_t snaplen_;
  bool isClosed_ = false;
  bool isWaiting_ = false;  ///< for the answer of next()
  DownloadTotals closedTotals_;
  int64_t heldBytes_ = 0;                        ///< reported to the JavaScript garbage collector
  std::unordered_map<uint32_t, SlabPtr> parts_;  ///< handed to JavaScript, by id
  uint32_t nextId_ = 0;
};

}  // namespace capfleet::binding
