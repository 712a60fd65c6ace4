/** All commands. Programs are loaded only when they run, so no command waits for the code of another. */
import { existsSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { addClientCommands } from './client/command/client-commands.ts'
import { createProgram, runCommandLine } from './client/command/command-line.ts'
import { addOperatorCommands } from './operator/operator-commands.ts'
import { keepCompiled } from './shared/base/compile-cache.ts'
import { CapfleetError } from './shared/base/error.ts'
import { aborted, runProgram } from './shared/base/program.ts'

const DEFAULT_DEMO_PORT = 8080
const LINGER_MS = 2_000
const APPLIANCE_ENGINE = 'capfleet.node'
const GATEWAY_ENGINE = 'capfleet-gateway.node'
/** The parts of the engine (native/build) that each command needs. */
const ENGINES_OF: Readonly<Record<string, readonly string[]>> = {
  gateway: [GATEWAY_ENGINE],
  worker: [GATEWAY_ENGINE],
  appliance: [APPLIANCE_ENGINE],
  recorder: [APPLIANCE_ENGINE],
  demo: [APPLIANCE_ENGINE, GATEWAY_ENGINE],
  import: [APPLIANCE_ENGINE],
  store: [APPLIANCE_ENGINE],
  device: [GATEWAY_ENGINE],
}

/** Runs the command that the user typed. Never rejects: a failure is printed, and sets the exit status. */
export async function runCapfleet(): Promise<void> {
  const program = createProgram(
    'One URL in front of many packet-capture appliances, and the appliance itself.',
  ).hook('preAction', (_program, command) => refuseWithoutEngine(program, command))
  program.commandsGroup('Ask a gateway:')
  await addClientCommands(program, process.argv.slice(2))
  program.commandsGroup('Run the programs:')
  addPrograms(program)
  addOperatorCommands(program)
  await runCommandLine(program)
}

const configOption = (example: string): Option =>
  new Option('--config <file>', `YAML file; every setting is in ${example}`)
    .env('CAPFLEET_CONFIG')
    .makeOptionMandatory()

const checkOption = (): Option =>
  new Option(
    '--check',
    'check the configuration and the files that it names, then exit; status 1 = something is wrong',
  )

/** Options of each program; with --check it only validates its configuration. */
interface ProgramOptions {
  readonly config: string
  readonly check?: boolean
}

function addPrograms(program: Command): void {
  program
    .command('gateway')
    .description('serve the fleet: routes, queues and merges downloads of many devices')
    .addOption(configOption('config/gateway.example.yaml'))
    .addOption(checkOption())
    .action(({ config, check }: ProgramOptions) =>
      check
        ? checkConfig(config, 'checkGatewayConfig')
        : serve('gateway', async (signal) =>
            (await import('./gateway/gateway.ts')).startGatewayFromFile(config, signal),
          ),
    )

  program
    .command('worker')
    .description('run exports: any number of workers, on any machines, share the work of a gateway')
    .addOption(configOption('config/gateway.example.yaml'))
    .addOption(checkOption())
    .action(({ config, check }: ProgramOptions) =>
      check
        ? checkConfig(config, 'checkGatewayConfig')
        : serve('worker', async (signal) =>
            (await import('./worker/worker.ts')).startWorkerFromFile(config, signal),
          ),
    )

  const appliance = program
    .command('appliance')
    .description("serve a device's HTTP API over its store")
    .addOption(configOption('config/appliance.example.yaml'))
    .addOption(checkOption())
    .action(({ config, check }: ProgramOptions) =>
      check
        ? checkConfig(config, 'checkApplianceConfig')
        : serve('appliance', async () =>
            (await import('../appliance/appliance.ts')).startApplianceFromFile(config),
          ),
    )

  appliance
    .command('doctor')
    .description(
      'check whether this machine can capture without loss, and report what to change; status 1 = problems',
    )
    .option('--json', 'print the findings as JSON')
    .action(async (_options: unknown, command: Command) => {
      const { config, json = false } = command.optsWithGlobals<{ config: string; json?: boolean }>()
      let isWell = true
      await runProgram(async () => {
        isWell = await (await import('./operator/appliance-doctor.ts')).runDoctor(config, { json })
      })
      if (!isWell) process.exitCode = 1
    })

  program
    .command('recorder')
    .description(
      "run the recorder, the only process that writes a device's store; the appliance and `import` connect to it",
    )
    .addOption(configOption('config/appliance.example.yaml'))
    .addOption(checkOption())
    .action(({ config, check }: ProgramOptions) =>
      check
        ? checkConfig(config, 'checkRecorderConfig')
        : serve('recorder', async (signal) =>
            (await import('../appliance/recorder.ts')).startRecorderFromFile(config, signal),
          ),
    )

  program
    .command('demo')
    .description('run three appliances with captures and a gateway on this machine, until Ctrl-C')
    .addOption(
      new Option('--port <port>', 'port of the gateway; 0 = any free port')
        .env('CAPFLEET_PORT')
        .default(String(DEFAULT_DEMO_PORT)),
    )
    .addOption(
      new Option('--home <folder>', 'where the demo keeps its files')
        .env('CAPFLEET_HOME')
        .default('./.capfleet'),
    )
    .option(
      '--import <files...>',
      'capture files to serve instead of generated traffic, spread over the devices',
    )
    .action((options: { port: string; home: string; import?: string[] }) =>
      runProgram(async (signal) => {
        const { runDemo } = await import('./demo/demo.ts')
        await runDemo(
          { home: options.home, port: parsePort(program, options.port), importFiles: options.import ?? [] },
          signal,
        )
      }),
    )
}

/**
 * The npm package is for clients of a gateway, and each image and Debian package for some of the programs; a checkout
 * builds the engine.
 */
function refuseWithoutEngine(program: Command, command: Command): void {
  const name = command.parent === program ? command.name() : (command.parent?.name() ?? '')
  const readsConfig = command.getOptionValue('config') !== undefined
  const engines = ENGINES_OF[name] ?? (readsConfig ? [GATEWAY_ENGINE] : [])
  const isThere = (path: string): boolean => existsSync(new URL(path, import.meta.url))
  const missing = engines.find((engine) => !isThere(`../native/build/${engine}`))
  if (missing === undefined || isThere('../native/CMakeLists.txt')) return
  throw new CapfleetError(
    'not-implemented',
    `${name} needs the native engine (${missing}), which is not in this package; run it in a checkout of the repository, where npm start builds it, or in the image or with the Debian package made for it`,
  )
}

/** A server program: prints its address on stdout, then runs until it is told to stop. */
interface RunningProgram {
  readonly address: string
  /** How long running downloads may continue. */
  readonly drainMs: number
  close(drainMs: number): Promise<void>
}

/** `start` may fail when its signal aborts because the program is told to stop during its start. */
function serve(name: string, start: (signal: AbortSignal) => Promise<RunningProgram>): Promise<void> {
  // SIGHUP means that files should be read again; it must not end a program that has none, or is starting or ending.
  process.on('SIGHUP', () => undefined)
  return runProgram(
    async (signal) => {
      const running = await start(signal).catch((error: unknown) => {
        if (signal.aborted) return undefined
        throw error
      })
      if (running === undefined) return
      process.stdout.write(`capfleet ${name} ready ${running.address}\n`)
      keepCompiled()
      await aborted(signal)
      await running.close(running.drainMs)
      // Anything left by then, such as a connection that is being opened, must not delay the exit.
      setTimeout(() => process.exit(), LINGER_MS).unref()
    },
    { outlivesOutput: true },
  )
}

function checkConfig(path: string, check: keyof typeof import('./operator/check-config.ts')): Promise<void> {
  return runProgram(async () => {
    const checks = await import('./operator/check-config.ts')
    await checks[check](path)
    process.stderr.write(`${path}: OK\n`)
  })
}

function parsePort(program: Command, text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  program.error(`error: the port must be 0 to 65535, got "${text}"`)
}
