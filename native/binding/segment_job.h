// The extent of a growing segment, and the removal of a segment, as JavaScript functions.
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

/// removeSegment(segment, evenIfRead): Promise<boolean>, false if it is being read.
Napi::Value removeSegmentOf(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
