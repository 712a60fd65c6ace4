/** The commands that use a gateway. Each is defined on demand, so none waits for the code of another. */
import type { Command } from 'commander'

interface ClientCommand {
  readonly says: string
  /** Adds its arguments, flags, subcommands and action. */
  readonly define: () => Promise<(command: Command) => void>
}

export const CLIENT_COMMANDS = {
  login: {
    says: 'log in to a gateway, for the commands below',
    define: async () => (await import('./access/login-commands.ts')).defineLogin,
  },
  context: {
    says: 'manage the gateways you are logged in to: list, use, remove',
    define: async () => (await import('./access/login-commands.ts')).defineContext,
  },
  devices: {
    says: 'list the devices: whether they answer, their streams, their clocks',
    define: async () => (await import('./list-commands.ts')).defineDevices,
  },
  captures: {
    says: 'list the captures of all devices, or of some',
    define: async () => (await import('./list-commands.ts')).defineCaptures,
  },
  upload: {
    says: 'upload a capture file to a device, where it becomes a capture',
    define: async () => (await import('./upload-command.ts')).defineUpload,
  },
  queue: {
    says: 'list running downloads, and waiting ones with their place in the queue; cancel one',
    define: async () => (await import('./list-commands.ts')).defineQueue,
  },
  status: {
    says: 'show what the devices are capturing',
    define: async () => (await import('./recording-commands.ts')).defineStatus,
  },
  start: {
    says: 'start a capture on the devices that --device names',
    define: async () => (await import('./recording-commands.ts')).defineStart,
  },
  stop: {
    says: 'stop the capture on the devices that --device names',
    define: async () => (await import('./recording-commands.ts')).defineStop,
  },
  estimate: {
    says: 'estimate the size of a download, without downloading anything',
    define: async () => (await import('./downloads/report-commands.ts')).defineEstimate,
  },
  seen: {
    says: 'find where addresses were seen, and when, on all devices',
    define: async () => (await import('./downloads/seen-command.ts')).defineSeen,
  },
  get: {
    says: 'download packets as a PCAP file: a capture, or a time range of many devices in one',
    define: async () => (await import('./downloads/get-command.ts')).defineGet,
  },
  check: {
    says: 'check that downloaded pcapng files are whole',
    define: async () => (await import('./check-command.ts')).defineCheck,
  },
  receipt: {
    says: 'show the outcome of a download of the last 24 hours',
    define: async () => (await import('./downloads/report-commands.ts')).defineReceipt,
  },
  export: {
    says: 'manage downloads that the gateway runs as jobs: create, list, watch, get, cancel, schedule',
    define: async () => (await import('./exports/export-commands.ts')).defineExport,
  },
  token: {
    says: 'manage credentials for programs: create, list, revoke',
    define: async () => (await import('./access/token-commands.ts')).defineToken,
  },
  audit: {
    says: 'list who did what, and check that no line of the audit was changed: list, verify',
    define: async () => (await import('./access/audit-commands.ts')).defineAudit,
  },
  open: {
    says: "print the link of the gateway's page, for a browser",
    define: async () => (await import('./open-command.ts')).defineOpen,
  },
  health: {
    says: 'check whether a gateway, worker or appliance is running; status 0 or 1',
    define: async () => (await import('./health-command.ts')).defineHealth,
  },
  completion: {
    says: 'print the script that completes commands in bash, zsh or fish',
    define: async () => (await import('./completion-commands.ts')).defineCompletion,
  },
} as const satisfies Record<string, ClientCommand>

/** Used by the scripts of `completion`; not typed by users. */
const HIDDEN_COMMAND = '__complete'

/** Adds all of them by name, and the full definitions of those whose names are among `words`. */
export async function addClientCommands(program: Command, words: readonly string[]): Promise<void> {
  for (const [name, { says, define }] of Object.entries(CLIENT_COMMANDS)) {
    const command = program.command(name).description(says)
    if (words.includes(name)) (await define())(command)
  }
  if (!words.includes(HIDDEN_COMMAND)) return
  const { defineComplete } = await import('./completion-commands.ts')
  defineComplete(program.command(HIDDEN_COMMAND, { hidden: true }))
}
