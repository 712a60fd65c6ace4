// The last TypeScript with a programming interface, without a command tsc that would conflict with ours.
import common from '@ts-morph/common'

// biome-ignore lint/style/noDefaultExport: as the package typescript has it
export default common.ts
