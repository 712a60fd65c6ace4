// Keeps libpcap's compiler from asking the network and the disk for names. Linking this unit
// replaces the resolver functions of the C library in the whole program: addresses in figures pass,
// names of services and protocols are those that loadNames() has read, names of hosts and networks
// are unknown.
#pragma once

namespace capfleet {

/// Reads the machine's names of services and protocols. Call it once, while files may be opened.
void loadNames();

/// A remark to append to libpcap's message, or "" when no name was refused so far.
const char* refusedNameHint();

}  // namespace capfleet
