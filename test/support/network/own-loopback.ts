/**
 * A loopback address used only by this process, for the devices of a test. Requests to a device that was switched off
 * must not reach a server of another test file that got the same port meanwhile.
 */
export const OWN_LOOPBACK = `127.${1 + ((process.pid >> 16) & 0x7f)}.${(process.pid >> 8) & 0xff}.${process.pid & 0xff}`
