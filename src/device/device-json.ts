import { deviceProtocol } from './device-failure.ts'

/** The API's answers have three levels. What is nested deeper may not be written again without harm. */
const DEPTH_MAX = 16
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** A device's JSON. Fails with device-protocol when it is malformed or nested too deep. */
export function parseDeviceJson(device: string, text: string): unknown {
  if (nestsTooDeep(text)) throw deviceProtocol(device, `sent JSON of more than ${DEPTH_MAX} levels`)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw deviceProtocol(device, 'sent malformed JSON', cause)
  }
}

/** Looks at brackets outside of strings alone, so that it needs no stack, however deep they are nested. */
export function nestsTooDeep(text: string): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) isInString = !isInString
    else if (!isInString && opens(code) && ++depth > DEPTH_MAX) return true
    else if (!isInString && closes(code)) depth--
  }
  return false
}

function opens(code: number): boolean {
  return code === 0x7b || code === 0x5b
}

function closes(code: number): boolean {
  return code === 0x7d || code === 0x5d
}
