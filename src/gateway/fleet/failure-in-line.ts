import { type CapfleetError, ERROR_KINDS, type ErrorCode } from '../../shared/base/error.ts'
import { deviceRefusal } from '../device/device-refusal.ts'

/** The error in a line of a device's answer, as if the device had answered with its status. */
export function failureInLine(
  device: string,
  { code, detail }: { readonly code: string; readonly detail: string },
): CapfleetError {
  const status =
    code in ERROR_KINDS ? ERROR_KINDS[code as ErrorCode].status : ERROR_KINDS['internal-error'].status
  return deviceRefusal(device, { status, body: JSON.stringify({ code, detail }) }).error
}
