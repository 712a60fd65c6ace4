/** The fleet as one caller sees it: devices outside their bounds do not exist. */
import type { Device } from '../device/device.ts'
import type { Fleet, FleetMember } from './fleet.ts'
import { isSelected } from './select-devices.ts'
import { notInFleet } from './unknown-device.ts'

/** The visible part of a fleet's interface. */
export type FleetView = Pick<Fleet, 'devices' | 'isComplete' | 'members' | 'find' | 'get' | 'choose'>

/** The devices of the fleet that each of `selections` contains (in the form of selectDevices). */
export class VisibleFleet implements FleetView {
  readonly #fleet: Fleet
  readonly #selections: readonly string[]

  constructor(fleet: Fleet, selections: readonly string[]) {
    this.#fleet = fleet
    this.#selections = selections
  }

  get devices(): readonly Device[] {
    return this.#fleet.devices.filter((device) => this.#isVisible(device))
  }

  get isComplete(): boolean {
    return this.#fleet.isComplete
  }

  get members(): readonly FleetMember[] {
    return this.#fleet.members.filter(({ device }) => this.#isVisible(device))
  }

  find(name: string): FleetMember | undefined {
    const member = this.#fleet.find(name)
    return member !== undefined && this.#isVisible(member.device) ? member : undefined
  }

  get(name: string): FleetMember {
    this.#refuseHidden(name)
    return this.#fleet.get(name)
  }

  choose(name: string): FleetMember {
    this.#refuseHidden(name)
    return this.#fleet.choose(name)
  }

  #isVisible(device: Device): boolean {
    return this.#selections.every((selection) => isSelected(device, selection))
  }

  #refuseHidden(name: string): void {
    if (this.find(name) === undefined) throw notInFleet(this, name)
  }
}
