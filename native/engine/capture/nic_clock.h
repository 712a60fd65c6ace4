// The clock of a network card, for time stamps that the card makes.
#pragma once

#include <string>

namespace capfleet {

/// Has the card stamp every packet that it receives, when it can and when its clock shows the time
/// of this machine within a second (ptp4l and phc2sys keep it so). True when the socket's packets
/// then carry the card's stamps. Needs CAP_NET_ADMIN and leave to read the card's /dev/ptp.
bool useNicTimestamps(int socket, const std::string& interfaceName);

}  // namespace capfleet
