/** The command line. It does nothing else, so that all that it loads has been compiled by an earlier start. */
import { useCompileCache } from './shared/base/compile-cache.ts'
import { importSmallHttp } from './shared/base/small-http.ts'

useCompileCache()
importSmallHttp()
const { runCapfleet } = await import('./capfleet-commands.ts')
await runCapfleet()
