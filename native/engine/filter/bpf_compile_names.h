// Keeps libpcap's compiler from looking up names on the network and the disk. Linking this unit
// replaces the resolver functions of the C library in the whole program: numeric addresses work,
// names of services and protocols are those that loadNames() has read, names of hosts and networks
// are unknown.
#pragma once

namespace capfleet {

/// Reads the machine's names of services and protocols. Must be called once, while files may be
/// opened.
void loadNames();

/// A remark to append to libpcap's message, or "" if no name has been rejected so far.
const char* refusedNameHint();

}  // namespace capfleet
