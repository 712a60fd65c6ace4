// What a growing segment holds, the removal of a segment and the making of its sieves, as calls of
// JavaScript.
// stored-segments.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// measureSegment(segment, known?): Promise<SegmentExtent> of stored-segments.ts.
Napi::Value measureSegmentOf(const Napi::CallbackInfo& info);

/// removeSegment(segment, evenIfRead): Promise<boolean>, false when it is being read.
Napi::Value removeSegmentOf(const Napi::CallbackInfo& info);

/// addSieves(segment): { finished: Promise<bigint>, cancel(): void }, with the number of blocks
/// that have a sieve now and had none.
Napi::Value addSievesTo(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
