/**
 * The command line of the single executable: only the commands that ask a gateway. `.ci/package/client-executable.mjs`
 * makes one CommonJS file of it, so nothing is awaited at the top level.
 */
import { addClientCommands } from './client-commands.ts'
import { createProgram, runCommandLine } from './command-line.ts'

const program = createProgram('The client of capfleet: packets of many capture appliances behind one URL.')
void addClientCommands(program, process.argv.slice(2)).then(async () => {
  // `audit verify` is not among these commands: it reads the files of a gateway.
  program.commands.find((command) => command.name() === 'audit')?.description('list who did what')
  await runCommandLine(program)
})
