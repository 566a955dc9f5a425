#!/usr/bin/env python3
"""Flies a simulated drone with the unmodified cfclient, by its own buttons, and prints what its window showed as JSON.

Runs in a Python that has cfclient, with `SCAN_ADDRESS` naming the address whose UDP ports 19850 to 19859 cfclient
looks at. `cfclient_session.py URI PICTURE`: connects to URI, which the scan has to find, and leaves a picture of the window.
A dialog that cfclient opens (a log block that could not start, a lost connection) ends the session with its text.
"""
from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

from PyQt6.QtCore import QItemSelectionModel, QModelIndex, QTimer
from PyQt6.QtWidgets import QApplication, QMessageBox

PATIENCE_S = 60


class Window:
    """The main window of cfclient, and waiting for what it shows."""

    def __init__(self):
        self.app = QApplication(["cfclient"])
        self.app.setStyle("Fusion")
        from cfclient.ui.main import MainUI
        self.main = MainUI()
        self.main.show()
        self.main.set_default_theme()
        for name in ("Console", "Parameters", "Log TOC"):
            self.main._tab_toolbox_show_as_tab(self.tab(name))
        self.dialogs: list[str] = []
        # A modal dialog runs its own event loop, in which this timer still fires.
        self._closer = QTimer()
        self._closer.timeout.connect(self._close_dialogs)
        self._closer.start(50)

    def _close_dialogs(self) -> None:
        dialog = self.app.activeModalWidget()
        if isinstance(dialog, QMessageBox):
            self.dialogs.append(f"{dialog.windowTitle()}: {dialog.text()}")
            dialog.reject()

    def tab(self, name: str):
        """One of cfclient's tabs."""
        return self.main.loaded_tab_toolboxes[name]

    def show(self, name: str) -> None:
        """Brings a tab to the front: cfclient updates only what is visible."""
        self.main.tab_widget.setCurrentWidget(self.tab(name))

    def wait(self, condition, what: str) -> None:
        """Runs the window until `condition()` holds; ends the session when it does not, or when a dialog opens."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if self.dialogs:
                sys.exit(f"while waiting for {what}, cfclient said: {self.dialogs}")
            if time.monotonic() > end:
                sys.exit(f"waited {PATIENCE_S} s for {what}")
            self.app.processEvents()
            time.sleep(0.01)


def select_parameter(window: Window, name: str) -> None:
    """Selects a parameter by its full name in the tree of the parameter tab."""
    group, leaf = name.split(".")
    tree = window.tab("Parameters").paramTree
    model = tree.model()

    def child(parent: QModelIndex, text: str) -> QModelIndex:
        rows = [model.index(row, 0, parent) for row in range(model.rowCount(parent))]
        return next((index for index in rows if model.data(index) == text), QModelIndex())

    parent = child(QModelIndex(), group)
    index = child(parent, leaf)
    if not index.isValid():
        sys.exit(f"the parameter tab has no {name}")
    tree.expand(parent)
    select = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    tree.selectionModel().select(index, select)


def main() -> None:
    """The session: scan, connect, read, set, arm, take off, stop, disconnect."""
    from cfclient.ui.main import UIState
    logging.basicConfig(level=logging.WARNING)
    uri, picture = sys.argv[1], Path(sys.argv[2])
    window, seen = Window(), {}
    main, flight, params = window.main, window.tab("Flight Control"), window.tab("Parameters")

    # The scan at the start finds the drone by itself; the user picks it and connects.
    combo = main.interfaceCombo
    window.wait(lambda: main.uiState == UIState.DISCONNECTED and combo.findText(uri) >= 0, f"the scan to find {uri}")
    seen["scanned"] = [combo.itemText(row) for row in range(combo.count())]
    combo.setCurrentIndex(combo.findText(uri))
    main.connectButton.click()
    window.wait(lambda: main.uiState == UIState.CONNECTED, "the connection")
    window.wait(lambda: main.cf.param.is_updated, "all parameters")
    window.wait(lambda: main._aff_volts.text() not in ("", "-"), "the battery's voltage")
    seen["battery"] = main._aff_volts.text()

    # What the drone prints.
    console = window.tab("Console")
    window.show("Console")
    console._dumpSystemLoadButton.click()
    window.wait(lambda: "Task dump" in console.console.toPlainText(), "console text")
    seen["console"] = console.console.toPlainText()

    # A parameter, by the tab's own field and button, and what the tree then shows.
    window.show("Parameters")
    select_parameter(window, "stabilizer.controller")
    window.wait(lambda: params.paramDetailsLabel.text() == "stabilizer.controller", "the parameter's details")
    window.wait(lambda: params.currentValue.text() not in ("", "-"), "the parameter's value")
    seen["controller_before"] = params.currentValue.text()
    params.currentValue.setText("2")
    params.setParamButton.click()
    window.wait(lambda: main.cf.param.get_value("stabilizer.controller") == "2", "the new value")
    seen["controller_after"] = main.cf.param.get_value("stabilizer.controller")

    # Arm, take off, and stop by the red button.
    window.show("Flight Control")
    window.wait(lambda: flight.armButton.isEnabled() and flight.armButton.text() == "Arm", "the button to arm")
    flight.armButton.click()
    window.wait(lambda: flight.armButton.text() == "Disarm", "the drone to be armed")
    window.wait(flight.commanderBox.isEnabled, "command-based flight")
    flight.commanderTakeOffButton.click()
    window.wait(lambda: flight._supervisor_state.text() == "Flying", "the drone to fly")
    window.wait(lambda: float(flight.estimateZ.text() or 0) > 0.45, "half a metre of height")
    seen["height"] = float(flight.estimateZ.text())
    seen["motors"] = [bar.value() for bar in (flight.actualM1, flight.actualM2, flight.actualM3, flight.actualM4)]
    main.grab().save(str(picture))
    main.esButton.click()
    window.wait(lambda: "ocked" in flight._supervisor_state.text(), "the drone to be locked")
    seen["after_stop"] = flight._supervisor_state.text()

    main.connectButton.click()
    window.wait(lambda: main.uiState == UIState.DISCONNECTED, "the disconnection")
    seen["dialogs"] = window.dialogs
    print(json.dumps(seen), flush=True)
    # cfclient's own threads (input devices) do not end with the window.
    main.closeAppRequest()


if __name__ == "__main__":
    main()
