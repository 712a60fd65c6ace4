/** Where the kernel shows the machine. Tests show another one. */
export interface MachineRoots {
  readonly proc: string
  readonly sys: string
}

export const MACHINE_ROOTS: MachineRoots = { proc: '/proc', sys: '/sys' }
