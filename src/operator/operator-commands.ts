/** The subcommands for operators. Each loads its code only when it runs. */
import { type Command, Option } from 'commander'
import { type FormatOptions, formatOption } from '../client/command/common/list-output.ts'
import { runProgram } from '../shared/base/program.ts'
import { ROLES } from '../shared/base/scopes.ts'
import type { CheckedDevice } from './device-check-command.ts'
import type { ImportCommandOptions } from './import-command.ts'
import type { AddOptions, FileOptions } from './user-command.ts'

export function addOperatorCommands(program: Command): void {
  addImport(program)
  addStore(program)
  addDeviceCheck(program)
  addUser(program)
  addAuditVerify(program)
}

function addImport(program: Command): void {
  program
    .command('import')
    .description(
      'put capture files (PCAP or pcapng, also compressed by gzip, zstd, xz, lz4 or bzip2) into a store as captures',
    )
    .argument('<files...>', 'capture files; "-" reads one from standard input')
    .requiredOption('--store <folder>', "the appliance's store")
    .option('--create', 'create the store if it does not exist')
    .option(
      '--name <name>',
      'one capture of this name from all files; without it each file becomes a capture of its own',
    )
    .option('--description <text>', 'description stored with the capture')
    .option(
      '--evict',
      'remove the oldest packets of the store when it is full; without it nothing is removed',
    )
    .action((files: string[], options: ImportCommandOptions) =>
      runProgram(async (signal) => {
        const { importFiles } = await import('./import-command.ts')
        await importFiles(files, options, signal)
      }),
    )
}

function addStore(program: Command): void {
  const store = program.command('store').description("maintain an appliance's store")

  store
    .command('verify')
    .description(
      'check every packet of a store against its checksums, and print each damage with what a repair would do; safe during a capture, stops with Ctrl-C, can be repeated',
    )
    .requiredOption('--store <folder>', "the appliance's store")
    .option(
      '--repair',
      'rebuild indexes, tallies and sieves, mark damaged blocks, and unmark those whose bytes are correct again; without it nothing changes',
    )
    .action((options: { store: string; repair?: boolean }) =>
      runProgram(async (signal) => (await import('./store-command.ts')).verify(options, signal)),
    )

  store
    .command('reindex')
    .description(
      'add the data that address filters need to captures written by older versions; safe during a capture, stops with Ctrl-C, can be repeated',
    )
    .requiredOption('--store <folder>', "the appliance's store")
    .action((options: { store: string }) =>
      runProgram(async (signal) => (await import('./store-command.ts')).reindex(options, signal)),
    )

  store
    .command('trust-clock')
    .description(
      'confirm that the clock of this machine is right after a step or restart that the recorder cannot explain; removal of packets by age resumes',
    )
    .requiredOption('--store <folder>', "the appliance's store")
    .action((options: { store: string }) =>
      runProgram(async (signal) => (await import('./store-command.ts')).trustClock(options, signal)),
    )
}

function addDeviceCheck(program: Command): void {
  program
    .command('device')
    .description('check the devices of a gateway')
    .command('check')
    .description(
      'check everything that a gateway needs from a device, and report what does not work and what that means; uses at most one stream; status 1 = problems',
    )
    .argument('[name]', 'a device named in the configuration')
    .addOption(new Option('--config <file>', 'the configuration of the gateway').env('CAPFLEET_CONFIG'))
    .addOption(
      new Option(
        '--url <url>',
        'a device that is not configured yet; its password is prompted for, or read from a pipe',
      ),
    )
    .option('--user <name>', 'user name of the gateway on the device, with --url', 'gateway')
    .option('--ca <file>', 'CA certificates to verify the device with, with --url')
    .option('--json', 'print the findings as JSON')
    .action(
      async (name: string | undefined, { json = false, ...options }: CheckedDevice & { json?: boolean }) => {
        let isWell = true
        await runProgram(async (signal) => {
          const { runDeviceCheck } = await import('./device-check-command.ts')
          isWell = await runDeviceCheck({ ...options, name }, { json, signal })
        })
        if (!isWell) process.exitCode = 1
      },
    )
}

const USERS_FILE = ['--file <file>', 'the users file'] as const

function addUser(program: Command): void {
  const user = program.command('user').description('manage the users file of an appliance or a gateway')

  user
    .command('add')
    .description('add a user or change password and role; the password is prompted for, or read from a pipe')
    .argument('<name>')
    .requiredOption('--file <file>', 'the users file; created if missing')
    .addOption(
      new Option(
        '--role <role>',
        'viewer: lists; user: also downloads; full: also deletes, starts and stops captures; admin: also the tokens of all users',
      )
        .choices(ROLES)
        .default('user'),
    )
    .option(
      '--salt-file <file>',
      'file with random characters to use instead of a random salt: the same password and salt give identical files, as replicas need',
    )
    .action((name: string, options: AddOptions) =>
      runProgram(async () => (await import('./user-command.ts')).addUser(name, options)),
    )

  user
    .command('list')
    .description('list the users and their roles')
    .requiredOption(...USERS_FILE)
    .addOption(formatOption())
    .action((options: FileOptions & FormatOptions) =>
      runProgram(async () => (await import('./user-command.ts')).printUsers(options)),
    )

  user
    .command('remove')
    .description('remove a user; their running downloads are cut')
    .argument('<name>')
    .requiredOption(...USERS_FILE)
    .action((name: string, options: FileOptions) =>
      runProgram(async () => (await import('./user-command.ts')).takeUserAway(name, options)),
    )

  user
    .command('password')
    .description('change the password of a user; it is prompted for, or read from a pipe')
    .argument('<name>')
    .requiredOption(...USERS_FILE)
    .action((name: string, options: FileOptions) =>
      runProgram(async () => (await import('./user-command.ts')).setPassword(name, options)),
    )
}

/** `audit list` asks a gateway; `audit verify` reads the files of one. */
function addAuditVerify(program: Command): void {
  program.commands
    .find((command) => command.name() === 'audit')
    ?.command('verify')
    .description(
      'check that no line of the audit was changed or removed, and list any that were; status 1 = some were, or there is no audit',
    )
    .addOption(
      new Option('--folder <folder>', 'the folder named by audit.folder, or a copy of it').conflicts(
        'config',
      ),
    )
    .addOption(
      new Option('--config <file>', 'the configuration of the gateway whose audit it is').env(
        'CAPFLEET_CONFIG',
      ),
    )
    .option('--expect <ends...>', 'ends of chains that an earlier run printed: CHAIN:LINE:HASH')
    .action(async (options: { folder?: string; config?: string; expect?: string[] }, command: Command) => {
      let isWhole = true
      await runProgram(async () => {
        const folder = options.folder ?? (await auditFolderOf(options.config ?? needFolder(command)))
        isWhole = await (await import('./audit-verify.ts')).runAuditVerify(folder, options.expect ?? [])
      })
      if (!isWhole) process.exitCode = 1
    })
}

function needFolder(command: Command): never {
  command.error("error: required option '--folder <folder>' or '--config <file>' not specified")
}

async function auditFolderOf(configPath: string): Promise<string> {
  const [{ auditFolder }, { loadGatewayConfig }] = await Promise.all([
    import('../gateway/open-audit.ts'),
    import('../gateway/gateway-config.ts'),
  ])
  return auditFolder(await loadGatewayConfig(configPath))
}
