/** Checks whether the recorder may capture. */
import { readText } from '../machine/kernel-files.ts'
import { runTool } from '../machine/run-tool.ts'
import { type Capability, capabilitiesIn, hasCapability } from './capabilities.ts'
import { type Finding, FindingList } from './finding.ts'

export interface PrivilegeOptions {
  /** Path of /proc, containing a process `self`. */
  readonly proc: string
  /** Process id of the running recorder, or undefined. */
  readonly recorderPid: number | undefined
  /** The program that a recorder would run. */
  readonly execPath: string
}

/** Checks the running recorder, or else one that this user would start. Without ports no privileges are needed. */
export async function checkPrivileges(
  { proc, recorderPid, execPath }: PrivilegeOptions,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const list = new FindingList('privileges')
  const who = recorderPid === undefined ? 'a recorder of this user' : `the recorder (process ${recorderPid})`
  const status = await readText(`${proc}/${recorderPid ?? 'self'}/status`, signal)
  const effective = capabilitiesIn(status)
  const ofFile = (await runTool('getcap', { args: [execPath], signal })) ?? ''
  const has = (name: Capability): boolean =>
    hasCapability(effective, name) || (recorderPid === undefined && ofFile.includes(name.toLowerCase()))
  if (has('CAP_NET_RAW')) list.ok('CAP_NET_RAW', `${who} may capture`)
  else {
    list.problem('CAP_NET_RAW', {
      detail: `${who} may not capture`,
      fix: `setcap cap_net_raw+ep on a copy of ${execPath} that runs the recorder alone, or AmbientCapabilities=CAP_NET_RAW in its systemd unit`,
    })
  }
  if (has('CAP_NET_ADMIN')) list.ok('CAP_NET_ADMIN', 'present: hardware time stamps can be switched on')
  else {
    list.ok('CAP_NET_ADMIN', 'missing; needed only to switch hardware time stamps on')
  }
  return list.findings
}
