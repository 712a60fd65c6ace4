/** What every command line of capfleet has in common, whichever commands it contains. */
import { Command, type CommanderError } from 'commander'
import { productVersion } from '../../shared/base/product-version.ts'
import { describeError } from '../../shared/base/program.ts'
import { addExamples } from './command-examples.ts'
import { withUsageHint } from './common/usage-hint.ts'

const STATUS_USAGE = 2
/** Beside --addresses, --filter-addresses <file>, a terminal of 80 columns has less than commander wraps by itself. */
const HELP_WIDTH_MIN = 20

/** Without commands. */
export function createProgram(description: string): Command {
  const program: Command = new Command('capfleet')
    .description(description)
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride(endWith)
    .configureOutput({
      outputError: (text, write) => write(withUsageHint(text, program, process.argv.slice(2))),
    })
    .version(`capfleet ${productVersion()}`, '-V, --version', 'print the version')
    .configureHelp({ sortSubcommands: false, showGlobalOptions: true, minWidthToWrap: HELP_WIDTH_MIN })
  return program
}

/** Runs the command that the user typed. Never rejects: a failure is printed, and sets the exit status. */
export async function runCommandLine(program: Command): Promise<void> {
  addExamples(program)
  try {
    await program.parseAsync()
  } catch (error) {
    process.stderr.write(`capfleet: ${describeError(error)}\n`)
    process.exitCode = 1
  }
}

/** Help and version succeed; commander ends for everything else because of a mistake in the command line. */
function endWith({ exitCode }: CommanderError): never {
  process.exit(exitCode === 0 ? 0 : STATUS_USAGE)
}
