// The clock of a network card, for timestamps made by the card.
#pragma once

#include <string>

namespace capfleet {

/// Makes the card stamp every packet that it receives, if it can and its clock agrees with this
/// machine's to within a second (as ensured by ptp4l and phc2sys). True if the socket's packets
/// then carry the card's stamps. Needs CAP_NET_ADMIN and permission to read the card's /dev/ptp.
bool useNicTimestamps(int socket, const std::string& interfaceName);

}  // namespace capfleet
