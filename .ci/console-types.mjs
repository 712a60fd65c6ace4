// Generates the page's types of the gateway's API from the gateway's /openapi.json.
import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { routesWith } from '../src/gateway/routes/routes.ts'
import { openApi } from '../src/shared/contract/openapi.ts'
import { ROOT } from './setup/console.mjs'

// openapi-typescript needs the programming interface of TypeScript's compiler, which version 7 lacks.
const compiler = new URL('./setup/compiler-interface.mjs', import.meta.url).href
registerHooks({
  resolve: (name, context, next) =>
    name === 'typescript' ? { url: compiler, shortCircuit: true } : next(name, context),
})
const { default: openapiTs, astToString } = await import('openapi-typescript')
const types = await openapiTs(openApi('capfleet gateway', routesWith([])))
writeFileSync(join(ROOT, 'src', 'console', 'api-types.ts'), astToString(types))
