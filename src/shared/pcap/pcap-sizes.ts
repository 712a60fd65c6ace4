/** Sizes of the classic PCAP format (draft-ietf-opsawg-pcap). Free of Node.js, so that the page can import it too. */

/** Size of the file header, in bytes. */
export const PCAP_HEADER_BYTES = 24

/** Size of a record header, which precedes the captured bytes of each packet: seconds, fraction, captured length, original length. */
export const RECORD_HEADER_BYTES = 16

/** Largest captured length that libpcap and Wireshark accept. A record that claims more is damaged. */
export const MAX_CAPTURED_LENGTH = 262_144
