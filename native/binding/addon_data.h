// The addon's data per Node environment.
#pragma once

#include <napi.h>

#include <memory>

#include "main_thread.h"
#include "os/buffer_pool.h"
#include "slab_buffers.h"
#include "store/checked_blocks.h"

namespace capfleet::binding {

/// JavaScript thread only, except that the shared objects may be used anywhere.
class AddonData {
 public:
  static void create(Napi::Env env);
  /// Objects that outlive a call keep their own copy: while an environment shuts down, its data may
  /// be destroyed before them.
  static const std::shared_ptr<AddonData>& of(Napi::Env env);

  const std::shared_ptr<MainThread>& mainThread() const { return mainThread_; }
  const std::shared_ptr<BufferPool>& slabs() const { return slabs_; }
  const std::shared_ptr<CheckedBlocks>& checkedBlocks() const { return checkedBlocks_; }

  SlabBuffers buffers;                ///< buffers of slabs()
  Napi::FunctionReference makeError;  ///< (code, message) => Error
  Napi::FunctionReference downloadConstructor;
  Napi::FunctionReference liveCaptureConstructor;

 private:
  explicit AddonData(Napi::Env env) : mainThread_(MainThread::create(env)) {}

  std::shared_ptr<MainThread> mainThread_;
  std::shared_ptr<BufferPool> slabs_ = std::make_shared<BufferPool>();
  std::shared_ptr<CheckedBlocks> checkedBlocks_ = std::make_shared<CheckedBlocks>();
};

}  // namespace capfleet::binding
