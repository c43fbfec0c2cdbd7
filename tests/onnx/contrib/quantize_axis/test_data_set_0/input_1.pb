BscaleJмлл=
вё< ≥≥>