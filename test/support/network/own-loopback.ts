/**
 * The loopback address of this process alone, for the devices of a test. Who goes on calling a device that has been
 * switched off must not reach the server that another test file, beside this one, has been given the same port for.
 */
export const OWN_LOOPBACK = `127.${1 + ((process.pid >> 16) & 0x7f)}.${(process.pid >> 8) & 0xff}.${process.pid & 0xff}`
