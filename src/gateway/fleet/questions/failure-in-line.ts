import { type CapfleetError, ERROR_KINDS } from '../../../shared/base/error.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { deviceRefusal, isCodeOfDevice } from '../../device/device-refusal.ts'

/** Shown as the device sent it, because it can contain nothing else. */
const CODE = /^[a-z][a-z0-9-]{0,63}$/

/** The error in a line of a device's answer, as if the device had answered with its status. */
export function failureInLine(
  device: string,
  { code, detail }: { readonly code: string; readonly detail: string },
): CapfleetError {
  if (isCodeOfDevice(code)) {
    const { status } = ERROR_KINDS[code]
    return deviceRefusal(device, { status, body: JSON.stringify({ code, detail }) }).error
  }
  const which = CODE.test(code) ? `the error ${code}` : 'an error without a valid code'
  return deviceProtocol(device, `ended its answer with ${which}; its log has the details`)
}
