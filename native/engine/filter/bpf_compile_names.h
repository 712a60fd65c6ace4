// Keeps libpcap's compiler from asking the network for names. Linking this unit replaces the
// resolver functions of the C library in the whole program: addresses in figures and names of
// services pass, names of hosts and networks are unknown.
#pragma once

namespace capfleet {

/// A remark to append to libpcap's message, or "" when no name was refused so far.
const char* refusedNameHint();

}  // namespace capfleet
