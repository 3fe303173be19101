from hubbub.survey.sets.item_set import ItemSet as ItemSet
