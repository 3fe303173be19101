from hubbub_authoring import design as design, files as files, floor as floor, mechanisms as mechanisms
