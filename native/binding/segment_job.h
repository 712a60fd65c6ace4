// What a growing segment holds, and the removal of a segment, as calls of JavaScript.
// stored-segments.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// measureSegment(segment, known?): Promise<SegmentExtent> of stored-segments.ts.
Napi::Value measureSegmentOf(const Napi::CallbackInfo& info);
/// measureFinishedSegment(segment): Promise<SegmentExtent> of stored-segments.ts.
Napi::Value measureFinishedSegmentOf(const Napi::CallbackInfo& info);
/// takeSuspects(): string[] of stored-segments.ts.
Napi::Value takeSuspects(const Napi::CallbackInfo& info);

/// removeSegment(segment, evenIfRead): Promise<boolean>, false when it is being read.
Napi::Value removeSegmentOf(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
